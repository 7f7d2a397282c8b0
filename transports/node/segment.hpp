#pragma once
// Memory that processes of one node share. It has no name: the file behind it lives as long as someone maps it or has
// it open, and so goes with the last process, however that ends.

#include <cstddef>
#include <memory>

namespace kplan::transport::node_path {

/// A mapping. Shared by everything that lies in it.
class Segment {
 public:
  /// Makes new memory, of zeros. Errors: TransportError KP-T006.
  static std::shared_ptr<Segment> create(std::size_t bytes);
  /// The same, with the memory set aside at once: there is enough, or this throws.
  static std::shared_ptr<Segment> reserve(std::size_t bytes);
  /// Maps memory that another process has open under that number. Errors: TransportError KP-T006.
  static std::shared_ptr<Segment> open(int process, int file, std::size_t bytes);
  /// Maps all of it, for reading.
  static std::shared_ptr<Segment> open_to_read(int process, int file);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  /// Under which others can open it; until close_file().
  int file() const { return file_; }
  void close_file();

 private:
  static std::shared_ptr<Segment> make(std::size_t bytes, bool is_reserved);
  static std::shared_ptr<Segment> map_file(int process, int file, std::size_t bytes, bool is_written);
  Segment(int file, std::byte* data, std::size_t bytes) : file_(file), data_(data), bytes_(bytes) {}
  int file_;
  std::byte* data_;
  std::size_t bytes_;
};

}  // namespace kplan::transport::node_path
