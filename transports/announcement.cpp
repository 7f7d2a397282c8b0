#include "transports/announcement.hpp"

#include <memory>

#include "transports/bytes.hpp"

namespace kplan::transport {

std::vector<Announcement> tell(Transport& transport, std::span<const Announcement> announcements,
                               Clock::time_point deadline, std::string_view doing) {
  constexpr int most_that_hear_all = 32;
  std::vector<Announcement> out;
  if (transport.size() <= most_that_hear_all) {
    std::string mine;
    for (const Announcement& announcement : announcements) {
      append(mine, announcement.rank);
      append_sized(mine, announcement.bytes);
    }
    const std::vector<std::string> all = transport.allgather(mine, deadline);
    for (int from = 0; from < transport.size(); ++from)
      for (std::string_view in = all[static_cast<std::size_t>(from)]; !in.empty();) {
        const int to = take<int>(in);
        const std::string_view bytes = take_sized(in);
        if (to == transport.rank()) out.push_back({from, std::string(bytes)});
      }
    return out;
  }
  const auto kept = std::make_shared<const std::vector<Announcement>>(announcements.begin(), announcements.end());
  std::vector<OutgoingLetter> letters;
  for (const Announcement& announcement : *kept)
    letters.push_back({announcement.rank, std::as_bytes(std::span(announcement.bytes))});
  const std::unique_ptr<SparseExchange> exchange = transport.open_exchange(deadline, Use::set_up);
  exchange->keep(kept);
  exchange->begin(letters);
  complete(transport, *exchange, deadline, doing);
  for (const ReceivedLetter& letter : exchange->received())
    out.push_back({letter.from, {reinterpret_cast<const char*>(letter.bytes.data()), letter.bytes.size()}});
  return out;
}

}  // namespace kplan::transport
