"""What tests of several folders share: the registry of programs, what is observed of a run, models, bundles; for tests in C++ headers and a main()."""
