#pragma once
// Statements of a phase whose patterns are fixed, made one: what goes from one rank to another in short messages goes
// in one message, or in the letter of a varying statement, and a run does all of it at once.

#include "engine/runtime/program.hpp"

namespace kplan {

/// Makes one message of short ones between the same two ranks. Both ends come to the same: they know the messages
/// between them, that all ranks have the same phases, and are on the same path.
void share_messages(Program& program, const transport::Transport& transport);

/// Makes the statements of each phase one program, that of the first; collective operations stay alone.
void join_statements(Program& program);

/// Where a statement of a phase sends every rank a letter in every run, lets these carry short messages of the others.
/// Both ends come to the same, as in share_messages().
void enclose_messages(Program& program, const transport::Transport& transport);

}  // namespace kplan
