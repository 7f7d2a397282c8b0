// The disk cache between processes: what one compiled the others find, whatever happened to the files in between.
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "processes.hpp"
#include "widening_kernels.hpp"

using namespace kplan;
using namespace kplan::test;
using jit::Compiler;
using jit::Kernel;
using jit::KernelSpec;
namespace fs = std::filesystem;

namespace {

constexpr std::size_t count = 12;
const char* const child_test = "a process compiles twelve kernels and says where they came from";

std::vector<fs::path> entries(const std::string& folder) {
  std::vector<fs::path> out;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().filename() != "claims") out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

void write(const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

bool has_generator() { return Compiler::instance().is_available(); }

struct Counts {
  long compiled, disk, generated;
  bool operator==(const Counts&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Counts& c) {
  return out << c.compiled << " compiled, " << c.disk << " from disk, " << c.generated << " generated";
}

Counts compile_in(const std::string& folder, Environment more = {}) {
  more.push_back({"KPLAN_CACHE_DIR", folder});
  const Ended ended = run_child(child_test, more);
  INFO(ended.output);
  CHECK(ended.status == 0);
  return {ended.number("compiled"), ended.number("disk"), ended.number("generated")};
}

}  // namespace

TEST_CASE("a process compiles twelve kernels and says where they came from", "[.][child]") {
  if (const char* user = std::getenv("KPLAN_TEST_USER")) {
    Compiler::instance().is_available();  // while its file can be read
    REQUIRE(seteuid(static_cast<uid_t>(std::atoi(user))) == 0);
  }
  std::vector<KernelSpec> specs;
  for (std::size_t i = 0; i < count; ++i) specs.push_back(widening_spec(static_cast<std::int64_t>(100 + i), 8));
  const std::vector<Kernel> kernels = Compiler::instance().compile(specs);
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<float> source(2 * (100 + i));
    std::vector<double> target(100 + i, -1);
    for (std::size_t k = 0; k < source.size(); ++k) source[k] = static_cast<float>(k) / 3;
    std::byte* bases[] = {reinterpret_cast<std::byte*>(target.data()), reinterpret_cast<std::byte*>(source.data())};
    REQUIRE(kernels[i]({bases, nullptr, 0, nullptr, nullptr, nullptr}) == 0);
    for (std::size_t k = 0; k < target.size(); ++k) REQUIRE(target[k] == static_cast<double>(source[2 * k]));
  }
  print_where_from(kernels);
}

TEST_CASE("kernels found on disk need no code generator") {
  if (!has_generator()) return;
  const TemporaryFolder folder;
  CHECK(compile_in(folder.path()) == Counts{count, 0, count});
  CHECK(entries(folder.path()).size() == count);
  CHECK(compile_in(folder.path(), {{"KPLAN_PLUGIN", "/nowhere/libkplan_llvm.so"}}) == Counts{count, count, 0});
  const Ended ended = run_child(child_test, {{"KPLAN_CACHE_DIR", folder.path()}});
  CHECK(ended.number("load_us") == 0);
}

TEST_CASE("KPLAN_CACHE=off neither reads nor writes, and KPLAN_JIT=off does not read") {
  if (!has_generator()) return;
  const TemporaryFolder folder;
  CHECK(compile_in(folder.path(), {{"KPLAN_CACHE", "off"}}) == Counts{count, 0, count});
  CHECK(entries(folder.path()).empty());
  compile_in(folder.path());
  CHECK(compile_in(folder.path(), {{"KPLAN_JIT", "off"}}) == Counts{0, 0, 0});
}

TEST_CASE("an entry that is damaged, cut, longer or another's is made anew and replaced") {
  if (!has_generator()) return;
  const TemporaryFolder folder;
  compile_in(folder.path());
  const auto files = entries(folder.path());
  REQUIRE(files.size() == count);
  std::vector<std::string> whole;
  for (const fs::path& file : files) whole.push_back(contents(file));
  const std::string& good = whole[0];
  write(files[0], "");
  write(files[1], whole[1].substr(0, whole[1].size() / 2));
  write(files[2], whole[2] + "x");
  write(files[3], good);                               // another kernel's
  write(files[4], std::string(whole[4].size(), 'x'));  // anything
  for (const std::size_t place : {0, 9, 17, 40, 120}) {
    const std::size_t i = place == 0 ? 5 : place == 9 ? 6 : place == 17 ? 7 : place == 40 ? 8 : 9;
    std::string flipped = whole[i];
    flipped[place] = static_cast<char>(flipped[place] ^ 4);
    write(files[i], flipped);
  }
  std::string last = whole[10];
  last.back() = static_cast<char>(last.back() ^ 1);
  write(files[10], last);
  CHECK(compile_in(folder.path()) == Counts{count, 1, count - 1});
  CHECK(entries(folder.path()) == files);
  CHECK(compile_in(folder.path()) == Counts{count, count, 0});
}

TEST_CASE("a folder in which others may write is not used") {
  if (!has_generator()) return;
  const TemporaryFolder folder;
  compile_in(folder.path());
  for (const mode_t mode : {0770, 0702}) {
    chmod(folder.path().c_str(), mode);
    CHECK(compile_in(folder.path()) == Counts{count, 0, count});
  }
  chmod(folder.path().c_str(), 0755);
  CHECK(compile_in(folder.path()) == Counts{count, count, 0});
  chmod(entries(folder.path())[0].c_str(), 0620);
  CHECK(compile_in(folder.path()) == Counts{count, count - 1, 1});
}

TEST_CASE("a folder or an entry of another user is not used") {
  if (!has_generator() || geteuid() != 0) return;  // only root can give files away
  const TemporaryFolder folder;
  compile_in(folder.path());
  REQUIRE(chown(folder.path().c_str(), 65534, 65534) == 0);
  CHECK(compile_in(folder.path()) == Counts{count, 0, count});
  REQUIRE(chown(folder.path().c_str(), 0, 0) == 0);
  REQUIRE(chown(entries(folder.path())[0].c_str(), 65534, 65534) == 0);
  CHECK(compile_in(folder.path()) == Counts{count, count - 1, 1});
}

TEST_CASE("the folder is made, for its owner only") {
  if (!has_generator()) return;
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a/b";
  compile_in(path);
  struct stat about {};
  REQUIRE(stat(path.c_str(), &about) == 0);
  CHECK((about.st_mode & 0777) == 0700);
  REQUIRE(stat(entries(path)[0].c_str(), &about) == 0);
  CHECK((about.st_mode & 0777) == 0600);
}

TEST_CASE("a folder that cannot be written or made is no error") {
  if (!has_generator()) return;
  CHECK(compile_in("/proc/kplan") == Counts{count, 0, count});
  CHECK(compile_in("/dev/null") == Counts{count, 0, count});
  const TemporaryFolder folder;
  compile_in(folder.path());
  fs::remove(entries(folder.path())[0]);
  Environment user;
  if (geteuid() == 0) {                                                         // permissions mean nothing to root
    user = {{"KPLAN_TEST_USER", "65534"}, {"ASAN_OPTIONS", "detect_leaks=0"}};  // which another user cannot look for
    for (const auto& entry : fs::recursive_directory_iterator(folder.path()))
      REQUIRE(chown(entry.path().c_str(), 65534, 65534) == 0);
    REQUIRE(chown(folder.path().c_str(), 65534, 65534) == 0);
  }
  for (const auto& entry : fs::recursive_directory_iterator(folder.path()))
    chmod(entry.path().c_str(), entry.is_directory() ? 0500 : 0400);
  chmod(folder.path().c_str(), 0500);
  CHECK(compile_in(folder.path(), user) == Counts{count, count - 1, 1});
  CHECK(entries(folder.path()).size() == count - 1);
  for (const auto& entry : fs::recursive_directory_iterator(folder.path())) {
    if (entry.is_directory()) chmod(entry.path().c_str(), 0700);
  }
  chmod(folder.path().c_str(), 0700);
}

TEST_CASE("eight processes that start on an empty cache share the work") {
  if (!has_generator()) return;
  const TemporaryFolder folder;
  std::vector<Child> children;
  for (int i = 0; i < 8; ++i) children.emplace_back(child_test, Environment{{"KPLAN_CACHE_DIR", folder.path()}});
  long generated = 0;
  for (Child& child : children) {
    const Ended ended = child.finish();
    INFO(ended.output);
    CHECK(ended.status == 0);
    CHECK(ended.number("compiled") == count);
    CHECK(ended.number("disk") + ended.number("generated") == count);
    generated += ended.number("generated");
  }
  CHECK(generated == count);
  CHECK(entries(folder.path()).size() == count);
}

TEST_CASE("a process that dies while it makes a kernel leaves it to the others") {
  if (fake_generator().empty()) return;
  const TemporaryFolder folder;
  const std::string log = folder.path() + "/log";
  const Environment stuck = {{"KPLAN_CACHE_DIR", folder.path()},
                             {"KPLAN_PLUGIN", fake_generator()},
                             {"KPLAN_FAKE_LOG", log},
                             {"KPLAN_FAKE_MILLISECONDS", "1000000"}};
  Child first("a process compiles one kernel with the fake generator", stuck);
  while (!fs::exists(log)) usleep(1000);
  Child second("a process compiles one kernel with the fake generator",
               {{"KPLAN_CACHE_DIR", folder.path()}, {"KPLAN_PLUGIN", fake_generator()}});
  first.kill();
  CHECK(first.finish().status == -9);
  const Ended ended = second.finish();
  INFO(ended.output);
  CHECK(ended.status == 0);
  CHECK(ended.number("generated") == 1);
}

TEST_CASE("a process compiles one kernel with the fake generator", "[.][child]") {
  const KernelSpec spec = widening_spec(9);
  const auto kernels = Compiler::instance().compile({&spec, 1});
  CHECK(kernels[0]({nullptr, nullptr, 0, nullptr, nullptr, nullptr}) == 77);
  print_where_from(kernels);
}
