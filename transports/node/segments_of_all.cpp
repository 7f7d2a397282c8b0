// How it works: each rank tells the number of its file, and maps those of the others; where one could make none, the
// others leave it to that one to say why.
#include "transports/node/segments_of_all.hpp"

#include <string>

#include "transports/bytes.hpp"
#include "transports/matching.hpp"

namespace kplan::transport::node_path {

std::vector<std::shared_ptr<Segment>> segments_of_all(Transport& transport, const Neighbours& neighbours,
                                                      std::size_t bytes, Clock::time_point deadline) {
  std::vector<std::shared_ptr<Segment>> out(static_cast<std::size_t>(transport.size()));
  std::shared_ptr<Segment>& own = out[static_cast<std::size_t>(transport.rank())];
  constexpr int no_file = -1;
  int file = no_file;
  Problem problem;
  try {
    own = Segment::create(bytes);
    file = own->file();
  } catch (const std::exception& error) {
    problem = {without_code(error)};
  }
  std::string mine;
  append(mine, file);
  const std::vector<std::string> files = transport.allgather(mine, deadline);
  try {
    for (int peer = 0; peer < transport.size() && !problem; ++peer) {
      std::string_view theirs = files[static_cast<std::size_t>(peer)];
      const int their_file = take<int>(theirs);
      if (peer == transport.rank() || their_file == no_file) continue;
      out[static_cast<std::size_t>(peer)] = Segment::open(neighbours.process(peer), their_file, bytes);
    }
  } catch (const std::exception& error) {
    problem = {without_code(error)};
  }
  agree(transport, problem, deadline);  // everything is mapped: the files can be closed
  own->close_file();
  return out;
}

}  // namespace kplan::transport::node_path
