// How it works: sizes are rounded up to the blocks that files take. A quarter is freed beyond what must be, so that a
// full folder is not looked through for every store. Losing a race against another process removes a file twice, or
// one too many: a miss for somebody.
#include "jit/cache/eviction.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "jit/cache/cache_directory.hpp"

namespace kplan::jit {
namespace {

constexpr std::uint64_t block_bytes = 4096;
constexpr std::time_t temporary_seconds = 3600;

struct File {
  std::string name;
  std::uint64_t bytes;
  timespec modified;
};

bool is_older(const File& a, const File& b) {
  return a.modified.tv_sec != b.modified.tv_sec ? a.modified.tv_sec < b.modified.tv_sec
                                                : a.modified.tv_nsec < b.modified.tv_nsec;
}

}  // namespace

void evict(int directory, const char* folder, std::uint64_t most_bytes) {
  const int opened = openat(directory, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (opened < 0) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(fdopendir(opened), closedir);
  if (entries == nullptr) {
    close(opened);
    return;
  }
  std::vector<File> files;
  std::uint64_t total = 0;
  const std::time_t now = std::time(nullptr);
  while (const dirent* entry = readdir(entries.get())) {
    struct stat about {};
    if (fstatat(opened, entry->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(about.st_mode)) continue;
    const bool is_temporary = entry->d_name[0] == '.';
    if (is_temporary && about.st_mtime + temporary_seconds < now) unlinkat(opened, entry->d_name, 0);
    if (is_temporary) continue;
    const auto bytes = (static_cast<std::uint64_t>(about.st_size) + block_bytes - 1) / block_bytes * block_bytes;
    files.push_back({entry->d_name, bytes, about.st_mtim});
    total += bytes;
  }
  if (total <= most_bytes) return;
  std::sort(files.begin(), files.end(), is_older);
  for (std::size_t i = 0; i + 1 < files.size() && total > most_bytes - most_bytes / 4; ++i) {  // the newest stays
    unlinkat(opened, files[i].name.c_str(), 0);
    total -= files[i].bytes;
  }
}

}  // namespace kplan::jit
