#pragma once
// Names of generated functions.

#include <llvm/IR/Module.h>

#include <algorithm>
#include <string>

namespace kplan::jit {

/// A name for the symbol table: what is not a letter, digit or underscore becomes an underscore.
inline std::string symbol_name(const llvm::Module& module, const std::string& name) {
  std::string out = "kplan_" + name.substr(0, 80);
  std::replace_if(
      out.begin(), out.end(), [](unsigned char c) { return c >= 0x80 || (!isalnum(c) && c != '_'); }, '_');
  return out + "_" + std::to_string(module.size());
}

}  // namespace kplan::jit
