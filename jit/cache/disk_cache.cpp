// How it works: a file for each kernel, named by the hash of its key, in one of 256 folders that are each kept below
// their share of the limit. Files appear by rename, so that nobody sees half of one; one that is not what it should be
// is a miss, and replaced by the next store. Claims are locks on single bytes of one file, at an offset that the hash
// gives: nothing has to be made or removed for them, and the kernel gives them back for those who die.
#include "jit/cache/disk_cache.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "jit/cache/cache_entry.hpp"
#include "jit/cache/eviction.hpp"
#include "jit/settings.hpp"

namespace kplan::jit {
namespace {

constexpr std::uint64_t folder_count = 256;
constexpr off_t longest_entry = 64 << 20;
constexpr std::time_t touch_seconds = 24 * 3600;
/// A folder whose share is so large is looked through at every eighth store, a smaller one more often.
constexpr std::uint64_t large_folder_bytes = 256 * 4096;

struct EntryName {
  char folder[3];
  char path[40];
};

EntryName name_of(const CacheKey& key) {
  EntryName out;
  const auto folder = static_cast<unsigned>(key.hash.high >> 56);
  std::snprintf(out.folder, sizeof out.folder, "%02x", folder);
  std::snprintf(out.path, sizeof out.path, "%02x/%014llx%016llx", folder,
                static_cast<unsigned long long>(key.hash.high & 0x00ff'ffff'ffff'ffff),
                static_cast<unsigned long long>(key.hash.low));
  return out;
}

/// Where the limit on the size of files (ulimit -f) is in the way, a signal would end the process: it is held off.
bool write_all(int file, std::span<const std::byte> bytes) {
  sigset_t too_large, before;
  sigemptyset(&too_large);
  sigaddset(&too_large, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &too_large, &before);
  bool is_too_large = false;
  while (!bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    is_too_large = written < 0 && errno == EFBIG;
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  const timespec at_once{};
  if (is_too_large) sigtimedwait(&too_large, nullptr, &at_once);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return bytes.empty();
}

bool read_all(int file, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = read(file, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

}  // namespace

CacheKey::CacheKey(std::string key) : text(std::move(key)), hash(hash128(std::as_bytes(std::span(text)))) {}

DiskCache::DiskCache(std::string path, std::uint64_t most_bytes) : path_(std::move(path)), most_bytes_(most_bytes) {}

DiskCache DiskCache::from_environment() { return DiskCache(cache_path(), cache_limit_bytes()); }

DiskCache::Session DiskCache::open() const {
  Session out;
  out.most_bytes_ = most_bytes_;
  if (path_.empty()) out.why_not_ = "KPLAN_CACHE=off, or no directory is named by the environment";
  else out.directory_ = open_cache_directory(path_, out.why_not_);
  return out;
}

std::optional<std::vector<std::byte>> DiskCache::Session::find(const CacheKey& key) const {
  if (!is_open()) return std::nullopt;
  const Descriptor file(openat(directory_.number(), name_of(key).path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat about {};
  if (!file || fstat(file.number(), &about) != 0) return std::nullopt;
  if (!S_ISREG(about.st_mode) || about.st_uid != geteuid() || (about.st_mode & (S_IWGRP | S_IWOTH)) != 0 ||
      about.st_size > longest_entry)
    return std::nullopt;
  std::vector<std::byte> bytes(static_cast<std::size_t>(about.st_size));
  if (!read_all(file.number(), bytes)) return std::nullopt;
  const auto image = read_entry(bytes, key.text);
  if (!image) return std::nullopt;
  // Entries in use stay young; a day is near enough, and most hits write nothing.
  if (about.st_mtime + touch_seconds < std::time(nullptr)) futimens(file.number(), nullptr);
  return std::vector<std::byte>(image->begin(), image->end());
}

void DiskCache::Session::store(const CacheKey& key, std::span<const std::byte> image) const {
  if (!is_open()) return;
  static std::atomic<unsigned> count{0};
  const EntryName name = name_of(key);
  char temporary[64];
  std::snprintf(temporary, sizeof temporary, "%s/.%lld.%u.%lld", name.folder, static_cast<long long>(getpid()),
                count.fetch_add(1), static_cast<long long>(std::time(nullptr)));
  const auto create = [&] {
    return Descriptor(
        openat(directory_.number(), temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  };
  Descriptor file = create();
  if (!file && errno == ENOENT) {
    mkdirat(directory_.number(), name.folder, 0700);
    file = create();
  }
  if (!file) return;
  const bool is_written = write_all(file.number(), write_entry(key.text, image));
  if (!is_written || renameat(directory_.number(), temporary, directory_.number(), name.path) != 0) {
    unlinkat(directory_.number(), temporary, 0);
    return;
  }
  const std::uint64_t share = most_bytes_ / folder_count;
  const std::uint64_t stores_per_eviction = std::clamp<std::uint64_t>(8 * share / large_folder_bytes, 1, 8);
  if (key.hash.low % stores_per_eviction == 0) evict(directory_.number(), name.folder, share);
}

bool DiskCache::Session::lock(const CacheKey& key, short type) {
  struct flock range {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = static_cast<off_t>(key.hash.high >> 2);
  range.l_len = 1;
  return fcntl(locks_.number(), F_OFD_SETLK, &range) == 0 || (errno != EAGAIN && errno != EACCES);
}

bool DiskCache::Session::claim(const CacheKey& key) {
  if (!is_open() || !has_locks_) return true;
  if (!locks_) {
    locks_ = Descriptor(openat(directory_.number(), "claims", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    has_locks_ = static_cast<bool>(locks_);
    if (!has_locks_) return true;
  }
  return lock(key, F_WRLCK);
}

void DiskCache::Session::give_back(const CacheKey& key) {
  if (locks_) lock(key, F_UNLCK);
}

}  // namespace kplan::jit
