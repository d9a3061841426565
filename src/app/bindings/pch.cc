// Empty: owns the precompiled header that all folders with libtorch share.
