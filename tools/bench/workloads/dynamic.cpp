// Exchanges that are new in every run, and that only senders know. Dynamic sparse exchange: letters for other ranks
// than the run before, and nobody knows who sends to it. Parts and migration: something for every other rank, and
// nobody knows how much. Eight exchanges made in advance are gone through by turns.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "tools/bench/methods/sparse_exchange.hpp"
#include "tools/bench/workloads/workload.hpp"

namespace kplan::bench {
namespace {

constexpr std::size_t turns = 8;

/// What is sent.
struct Mailing {
  std::int64_t longest;    ///< elements of a letter
  std::size_t fields = 1;  ///< arrays that they are taken from
  bool is_to_all = false;  ///< every other rank gets a letter, else up to four of them, sometimes none
  bool is_listed = false;  ///< elements are chosen by lists, else they are slices

  std::int64_t most_letters(int size) const { return is_to_all ? size - 1 : 4; }
  std::int64_t outbox_length(int size) const { return (is_listed ? 5 : 1) * most_letters(size) * longest; }
  std::int64_t list_length(int size) const { return is_listed ? most_letters(size) * longest : 0; }
};

Letters letters_of(const Mailing& mailing, int rank, int size, std::size_t turn) {
  std::mt19937 random(static_cast<unsigned>(rank * 7001 + static_cast<int>(turn) * 17));
  std::vector<std::int32_t> others;
  for (std::int32_t r = 0; r < size; ++r)
    if (r != rank) others.push_back(r);
  if (!mailing.is_to_all) {
    std::shuffle(others.begin(), others.end(), random);
    const auto most = std::min<std::size_t>(4, others.size());
    others.resize(turn == turns - 1 && rank % 2 == 1 ? 0 : 1 + random() % most);
  }
  Letters out;
  out.targets = others;
  std::int32_t first = 0;
  for (std::size_t k = 0; k < others.size(); ++k) {
    out.counts.push_back(static_cast<std::int32_t>(mailing.longest / 2 + 1 +
                                                   static_cast<std::int64_t>(random()) % ((mailing.longest + 1) / 2)));
    out.counts.back() = std::min(out.counts.back(), static_cast<std::int32_t>(mailing.longest));
    out.firsts.push_back(first);
    first += out.counts.back();
  }
  // One pass over all elements gives each letter some of them, in their order.
  std::vector<std::size_t> owners;
  for (std::size_t k = 0; mailing.is_listed && k < others.size(); ++k)
    owners.insert(owners.end(), static_cast<std::size_t>(out.counts[k]), k);
  std::shuffle(owners.begin(), owners.end(), random);
  out.elements.resize(owners.size());
  std::vector<std::int32_t> next = out.firsts;
  std::int32_t element = 0;
  for (const std::size_t owner : owners) {
    element += static_cast<std::int32_t>(random() % 5);
    out.elements[static_cast<std::size_t>(next[owner]++)] = element++;
  }
  return out;
}

double sent(int rank, std::size_t field, std::int64_t k, unsigned seed) {
  return static_cast<double>((rank * 101 + static_cast<std::int64_t>(field) * 1009 + k * 7 + std::int64_t{seed} * 13) %
                             4093);
}

std::string difference(Mail& mail, const Mailing& mailing, unsigned seed) {
  const auto received = mail.received.as<std::int32_t>();
  for (int sender = 0; sender < mail.team.size; ++sender) {
    const Letters l = letters_of(mailing, sender, mail.team.size, seed % turns);
    const auto at = std::ranges::find(l.targets, mail.team.rank) - l.targets.begin();
    const bool is_sent = at < std::ssize(l.targets);
    const auto k = static_cast<std::size_t>(at);
    const std::int64_t count = is_sent ? l.counts[k] : 0;
    if (received[static_cast<std::size_t>(sender)] != count && sender != mail.team.rank)
      return fmt::format("rank {} has {} elements of rank {}, not {}", mail.team.rank,
                         received[static_cast<std::size_t>(sender)], sender, count);
    for (std::size_t f = 0; f < mail.fields(); ++f)
      for (std::int64_t n = 0; n < mail.longest; ++n) {
        double wanted = -1;
        if (n < count) {
          const std::int64_t at_sender = l.firsts[k] + n;
          wanted =
              sent(sender, f, mailing.is_listed ? l.elements[static_cast<std::size_t>(at_sender)] : at_sender, seed);
        }
        if (mail.row(f, sender)[n] != wanted)
          return fmt::format("rank {}: element {} of field {} of rank {} is wrong", mail.team.rank, n, f, sender);
      }
  }
  return "";
}

/// What the plan reads at every run, copied from the exchange whose turn it is.
struct Varying {
  std::vector<std::int32_t> targets, counts, firsts;
  explicit Varying(std::size_t most) : targets(most), counts(most), firsts(most) {}
};

template <class T>
std::span<std::byte> bytes_of(std::vector<T>& values) {
  return std::as_writable_bytes(std::span(values));
}

/// The plan's bindings that both families have.
Bindings bindings_of(const Mail& mail) {
  Bindings out{{"received", mail.received.bytes()}};
  for (std::size_t f = 0; f < mail.fields(); ++f) {
    out.emplace_back(fmt::format("outbox{}", f), mail.outboxes[f].bytes());
    out.emplace_back(fmt::format("inbox{}", f), mail.inboxes[f].bytes());
  }
  return out;
}

Method planned_letters(const std::shared_ptr<Mail>& mail) {
  auto varying = std::make_shared<Varying>(4);
  PlanBuilder builder("letters");
  builder.parameter("longest", Scalar::i64).parameter("n_letters", Scalar::i64, Scope::private_, Time::varying);
  builder.buffer("outbox0", Scalar::f64, {"4 * longest"}).buffer("inbox0", Scalar::f64, {"size", "longest"});
  builder.buffer("received", Scalar::i32, {"size"});
  for (const char* name : {"targets", "counts", "firsts"})
    builder.index_buffer(name, Scalar::i32, {4}, Scope::private_, Time::varying);
  builder.communicate(
      "letters",
      "inbox0[from, 0:c]@to <<= outbox0[f : f+c]@rank, received[from]@to <<= i32(c)@rank where from = rank, "
      "k in range(n_letters), to = targets[k], c = counts[k], f = firsts[k]");
  Bindings bindings = bindings_of(*mail);
  bindings.emplace_back("targets", bytes_of(varying->targets));
  bindings.emplace_back("counts", bytes_of(varying->counts));
  bindings.emplace_back("firsts", bytes_of(varying->firsts));
  return kplan_method(mail->team, builder.build(), {{"longest", mail->longest}, {"n_letters", 0}}, bindings,
                      [mail, varying](Executable& executable) {
                        const Letters& l = mail->next();
                        mail->clear_received();
                        std::ranges::copy(l.targets, varying->targets.begin());
                        std::ranges::copy(l.counts, varying->counts.begin());
                        std::ranges::copy(l.firsts, varying->firsts.begin());
                        executable.set("n_letters", l.targets.size());
                      });
}

/// To all others: counts and firsts by their ranks.
Method planned_parts(const std::shared_ptr<Mail>& mail, const Mailing& mailing) {
  const int size = mail->team.size;
  const std::int64_t length = mailing.outbox_length(size), listed = mailing.list_length(size);
  auto varying = std::make_shared<Varying>(static_cast<std::size_t>(size));
  PlanBuilder builder("parts");
  builder.parameter("longest", Scalar::i64).parameter("length", Scalar::i64).buffer("received", Scalar::i32, {"size"});
  for (const char* name : {"counts", "firsts"})
    builder.index_buffer(name, Scalar::i32, {"size"}, Scope::private_, Time::varying);
  if (mailing.is_listed)
    builder.parameter("listed", Scalar::i64)
        .index_buffer("elements", Scalar::i32, {"listed"}, Scope::private_, Time::varying);
  std::string moves;
  for (std::size_t f = 0; f < mail->fields(); ++f) {
    builder.buffer(fmt::format("outbox{}", f), Scalar::f64, {"length"});
    builder.buffer(fmt::format("inbox{}", f), Scalar::f64, {"size", "longest"});
    moves += fmt::format("{}inbox{}[from, j]@to <<= outbox{}[{}]@rank", f > 0 ? ", " : "", f, f,
                         mailing.is_listed ? "elements[firsts[to] + j]" : "firsts[to] + j");
  }
  const std::string to_all = "from = rank, to in world, to != rank";
  builder.communicate("parts", moves + " where " + to_all + ", j in range(counts[to])");
  builder.communicate("counts", "received[from]@to <<= counts[to]@rank where " + to_all);
  Bindings bindings = bindings_of(*mail);
  bindings.emplace_back("counts", bytes_of(varying->counts));
  bindings.emplace_back("firsts", bytes_of(varying->firsts));
  Values values{{"longest", mail->longest}, {"length", length}};
  if (mailing.is_listed) {
    bindings.emplace_back("elements", bytes_of(mail->elements));
    values.emplace_back("listed", listed);
  }
  return kplan_method(mail->team, builder.build(), std::move(values), bindings, [mail, varying](Executable&) {
    const Letters& l = mail->next();
    for (std::size_t k = 0; k < l.targets.size(); ++k) {
      const auto to = static_cast<std::size_t>(l.targets[k]);
      varying->counts[to] = l.counts[k];
      varying->firsts[to] = l.firsts[k];
    }
  });
}

Case make(const Team& team, const Mailing& mailing) {
  auto mail = std::make_shared<Mail>(team, mailing.longest, mailing.fields, mailing.outbox_length(team.size),
                                     mailing.list_length(team.size));
  Case out;
  for (std::size_t turn = 0; turn < turns; ++turn) {
    mail->exchanges.push_back(letters_of(mailing, team.rank, team.size, turn));
    const auto& counts = mail->exchanges.back().counts;
    out.peers = out.messages = std::max(out.peers, static_cast<int>(counts.size()));
    out.bytes = std::max(
        out.bytes, 8 * mailing.fields * static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), 0)));
  }
  out.turns = static_cast<int>(turns);
  out.rewrite = [mail](unsigned seed) {
    for (std::size_t f = 0; f < mail->fields(); ++f) {
      const auto outbox = mail->outboxes[f].as<double>();
      for (std::size_t k = 0; k < outbox.size(); ++k)
        outbox[k] = sent(mail->team.rank, f, static_cast<std::int64_t>(k), seed);
    }
  };
  out.whole.fill = [mail, rewrite = out.rewrite](unsigned seed) {
    mail->turn = seed;
    rewrite(seed);
    for (const AlignedMemory& inbox : mail->inboxes) std::ranges::fill(inbox.as<double>(), -1.0);
    std::ranges::fill(mail->received.as<std::int32_t>(), -1);
  };
  out.whole.difference = [mail, mailing](unsigned seed) { return difference(*mail, mailing, seed); };
  out.methods = {mailing.is_to_all ? planned_parts(mail, mailing) : planned_letters(mail)};
  if (mailing.is_to_all) out.methods.push_back(received_with_room(mail));
  else out.methods.insert(out.methods.end(), {nbx(mail), counted_by_reduce_scatter(mail)});
  out.methods.insert(out.methods.end(), {counted_by_alltoall(mail), counted_alltoallv(mail)});
  out.memory = mail;
  return out;
}

}  // namespace

void add_dynamic(std::vector<Workload>& to) {
  const auto add = [&](std::string name, std::vector<int> ranks, const Mailing& mailing) {
    to.push_back({std::move(name), std::move(ranks), [mailing](const Team& team) { return make(team, mailing); }});
  };
  for (const auto& [size, longest] : {std::pair("16 B", 2), {"1 KiB", 128}, {"64 KiB", 8192}})
    add(fmt::format("dynamic sparse exchange, letters to {}", size), {2, 4, 8}, {longest});
  for (const std::int64_t longest : {20, 500, 20000})
    add(fmt::format("parts of up to {} numbers, new in every run", longest), {}, {longest, 1, true});
  for (const std::int64_t longest : {200, 5000})
    add(fmt::format("migration of up to {} particles of eight fields", longest), {}, {longest, 8, true, true});
}

}  // namespace kplan::bench
