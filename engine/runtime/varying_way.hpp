#pragma once
// How the pattern of a varying statement is found in a run, and what its letters hold: by both ends (known_way.hpp),
// or by one, in rows (rows_way.hpp) or, the general way, as a draft that what others tell makes whole (told_way.hpp).
//
// In a run: send(), take_letter() for each that has come, take(); where receivers ask for what they know of, answer()
// of what the letters have asked for, take_answer() for each, take_answers(); apply(). Where one of them throws, the
// rest of them is left out, of what others send, too.

#include <span>
#include <vector>

#include "engine/runtime/run_context.hpp"
#include "engine/runtime/sent_letters.hpp"
#include "kplan/transport.hpp"

namespace kplan {

class VaryingWay {
 public:
  virtual ~VaryingWay() = default;

  /// Works out what this rank knows alone, and adds letters that tell it or ask for it.
  virtual void send(const RunContext& context, const Outbox& to) = 0;
  /// Whether anything can be made of letters: not where send() has failed.
  virtual bool can_take() const { return true; }
  /// Takes one with more than a head. It stays until the next exchange.
  virtual void take_letter(LetterKind kind, const transport::ReceivedLetter& letter) = 0;
  /// All of them have come: works out what they mean here. Nothing is written yet.
  virtual void take(const RunContext& context) = 0;
  /// Where the body of that rank's letter goes, region by region.
  virtual std::span<const std::span<std::byte>> places(int /*from*/, const std::vector<BoundMemory>& /*memory*/) {
    return {};
  }

  /// Adds the values that these ranks have asked for.
  virtual void answer(const RunContext& /*context*/, std::span<const int> /*requesters*/, const Outbox& /*to*/) {}
  virtual void take_answer(const transport::ReceivedLetter& /*letter*/) {}
  virtual void take_answers(const RunContext& /*context*/) {}

  /// Writes what has come, and what stays on this rank.
  virtual void apply(const RunContext& context) = 0;
};

}  // namespace kplan
