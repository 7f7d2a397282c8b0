#pragma once
// Code images on disk, by key. Every process of the user, on every machine that mounts the directory, may use it at the
// same time; whatever goes wrong with it is a miss.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "jit/cache/cache_directory.hpp"
#include "plans/hash.hpp"

namespace kplan::jit {

/// What an entry is found by: a text that says everything the code depends on, and its hash.
struct CacheKey {
  CacheKey() = default;
  explicit CacheKey(std::string key);

  std::string text;
  Hash128 hash;
};

class DiskCache {
 public:
  /// Entries beyond so many bytes go, the oldest first; approximately.
  explicit DiskCache(std::string path, std::uint64_t most_bytes);
  /// From the environment: `cache_path`, and KPLAN_CACHE_LIMIT in MiB, 256 if it is not set.
  static DiskCache from_environment();

  /// Opens the directory for a batch of look-ups and stores. False when there is none to use; `why_not` says why.
  class Session;
  Session open() const;

 private:
  std::string path_;
  std::uint64_t most_bytes_;
};

class DiskCache::Session {
 public:
  bool is_open() const { return static_cast<bool>(directory_); }
  const std::string& why_not() const { return why_not_; }

  /// The image stored under the key, if it is there whole and was stored by this user.
  std::optional<std::vector<std::byte>> find(const CacheKey& key) const;
  /// Stores an image in place of what is there. Best effort.
  void store(const CacheKey& key, std::span<const std::byte> image) const;

  /// The right to generate a key's code, among the processes that use the directory. Given back by `give_back`, with
  /// the session, and by the death of the process. Where there are no locks everybody gets it.
  bool claim(const CacheKey& key);
  void give_back(const CacheKey& key);

 private:
  friend class DiskCache;
  bool lock(const CacheKey& key, short type);

  Descriptor directory_, locks_;
  bool has_locks_ = true;
  std::string why_not_;
  std::uint64_t most_bytes_ = 0;
};

}  // namespace kplan::jit
