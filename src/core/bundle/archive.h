// A bundle as one file: the .tar of its directory. Reading one unpacks it into a directory of the caller's and executes nothing;
// archives come from strangers, so only what Python's tarfile and GNU tar write for plain files and directories is accepted, and
// links, devices, sparse files, paths that leave the directory and names that come twice are refused. docs/formats/bundle.md.
#pragma once
#include <filesystem>
#include <optional>

#include "core/base/files.h"

namespace cutaway::bundle {

/// A file that begins like a .tar. A directory is none.
bool looks_like_archive(const std::filesystem::path&);
/// Unpacks the files and directories of an archive into `into`, an existing empty directory. Stops at the first entry that is
/// refused; what was unpacked before it stays. The size of the archive bounds what is written.
base::Status unpack_archive(const std::filesystem::path& archive, const std::filesystem::path& into);
/// Writes all files of a bundle's directory, sorted, under one folder called as the archive without ".tar". Owners, modes and times
/// are fixed: the same bundle gives the same bytes. Replaces an old archive atomically. A link inside the bundle is an error.
base::Status write_archive(const std::filesystem::path& bundle, const std::filesystem::path& archive);

/// An archive unpacked into scratch space for as long as this lives.
struct UnpackedBundle {
  base::TemporaryDirectory scratch;
  std::filesystem::path path;   ///< the bundle: the scratch directory, or the one folder in it
};
base::Result<UnpackedBundle> unpack_bundle(const std::filesystem::path& archive);

/// A bundle that is read and not written to: the directory itself, or its .tar, unpacked for as long as this lives.
struct BundleArgument {
  std::filesystem::path path;
  std::optional<UnpackedBundle> unpacked;
};
base::Result<BundleArgument> open_argument(const std::filesystem::path&);

}  // namespace cutaway::bundle
