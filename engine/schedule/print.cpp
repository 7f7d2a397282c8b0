#include <nlohmann/json.hpp>

#include "engine/schedule/schedule.hpp"

namespace kplan {
namespace {

using Json = nlohmann::ordered_json;

/// A track: its base, or the first of its list, and a stride for each dimension.
Json track_json(const Piece& piece, const Track& track) {
  Json out;
  if (piece.list_length == 1) out["offset_bytes"] = track.bases[0];
  else {
    constexpr std::int64_t most_shown = 16;
    Json list = Json::array();
    for (std::int64_t k = 0; k < std::min(piece.list_length, most_shown); ++k) list.push_back(track.base(k));
    out["offsets_bytes"] = std::move(list);
    if (piece.list_length > most_shown) out["more_offsets"] = piece.list_length - most_shown;
  }
  if (!track.strides.empty()) out["strides_bytes"] = track.strides;
  return out;
}

Json part_json(const MessagePart& part, const PlanModel& plan, const Statement& s, const ValueForm& value,
               bool is_send) {
  const auto buffer = [&](const Expr& e) { return plan.buffers[static_cast<std::size_t>(e.id)].name; };
  const Reduction& r = s.reductions[static_cast<std::size_t>(part.reduction)];
  Json out{{"reduction", part.reduction}};
  if (!is_send) out["operator"] = part.is_assign ? "assign" : r.operator_name;
  if (part.piece.list_length > 1) out["blocks"] = part.piece.list_length;
  out["block_shape"] = part.piece.counts;
  const std::size_t message = part.piece.tracks.size() - 1;
  if (is_send) {
    for (std::size_t k = 0; k < value.elements.size(); ++k)
      out["from"].push_back(
          {{"buffer", buffer(*value.elements[k])}, {"at", track_json(part.piece, part.piece.tracks[k])}});
    out["message"] = track_json(part.piece, part.piece.tracks[message]);
  } else {
    out["message"] = track_json(part.piece, part.piece.tracks[message]);
    out["to"] = {{"buffer", buffer(*r.place)}, {"at", track_json(part.piece, part.piece.tracks[0])}};
  }
  return out;
}

Json message_json(const Message& m, const PlanModel& plan, const StatementSchedule& schedule, bool is_send) {
  const Statement& s = plan.statements[static_cast<std::size_t>(schedule.statement)];
  Json out{{"peer", m.peer}, {"elements", m.element_count}, {"bytes", m.payload_bytes}};
  for (const MessagePart& part : m.parts)
    out["parts"].push_back(
        part_json(part, plan, s, schedule.values[static_cast<std::size_t>(part.reduction)], is_send));
  return out;
}

}  // namespace

std::string to_json(const Schedule& schedule, const PlanModel& plan) {
  Json out{{"plan", schedule.plan}, {"rank", schedule.rank}, {"size", schedule.size}};
  out["statements"] = Json::array();
  for (const StatementSchedule& s : schedule.statements) {
    const Statement& statement = plan.statements[static_cast<std::size_t>(s.statement)];
    Json item{{"name", s.name}, {"statement", statement.text.text}, {"knowledge", name_of(s.knowledge.knowledge)}};
    if (s.collective.kind != transport::CollectiveKind::none) {
      item["collective"] = to_text(s.collective, statement);
      item["carried_by"] = s.collective.is_native ? "the transport's operation" : "messages";
    }
    item["apply"] = s.is_in_sender_order ? "in sender order" : "as messages arrive";
    const auto list = [&](const char* key, const std::vector<Message>& messages, bool is_send) {
      item[key] = Json::array();
      for (const Message& m : messages) item[key].push_back(message_json(m, plan, s, is_send));
    };
    list("sends", s.sends, true);
    list("receives", s.receives, false);
    if (!s.local_send.empty()) list("local_reads", s.local_send, true);
    if (!s.local_receive.empty()) list("local_writes", s.local_receive, false);
    out["statements"].push_back(std::move(item));
  }
  out["phases"] = schedule.phases;
  return out.dump(2);
}

}  // namespace kplan
