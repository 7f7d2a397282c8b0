// How it works: first everything is looked for on disk. What is missing is claimed spec by spec, so that processes that
// start together share the work; what others have claimed is waited for, a while, and taken up when they gave it back
// without a result. At the end all images go into executable memory in one go.
#include "jit/code_maker.hpp"

#include <chrono>
#include <thread>

#include "generator_identity.hpp"
#include "jit/cache/host_cpu.hpp"
#include "jit/settings.hpp"

namespace kplan::jit {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto longest_wait = std::chrono::seconds(2);  // without anything new
constexpr auto look_again = std::chrono::microseconds(500);

/// Adds the time of its life to a sum of microseconds.
class Timed {
 public:
  explicit Timed(double& sum) : sum_(sum) {}
  ~Timed() { sum_ += std::chrono::duration<double, std::micro>(Clock::now() - begin_).count(); }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  double& sum_;
  Clock::time_point begin_ = Clock::now();
};

bool can_make() { return *generator_identity != '\0' && !settings().is_off; }

}  // namespace

/// One call of `make`.
class CodeMaker::Batch {
 public:
  Batch(const CodeMaker& maker, std::span<const Spec* const> specs, Urgency urgency,
        const std::function<bool(std::size_t)>& is_wanted, Statistics& statistics)
      : specs_(specs),
        urgency_(urgency),
        is_wanted_(is_wanted),
        statistics_(statistics),
        keys_(specs.size()),
        images_(specs.size()),
        made_(specs.size()) {
    const Timed timed(statistics_.disk_us);
    session_ = maker.cache_.open();
    if (!session_.is_open()) return;
    for (std::size_t i = 0; i < specs.size(); ++i) keys_[i] = CacheKey(maker.identity_ + key_of(*specs[i]));
  }

  std::vector<MadeCode> make() {
    std::vector<std::size_t> missing, others;
    for (std::size_t i = 0; i < specs_.size(); ++i)
      if (!look_up(i)) missing.push_back(i);
    if (!missing.empty() && Generator::instance().is_available()) {
      for (std::size_t i : missing)
        if (!take_turn(i)) others.push_back(i);
      wait_for(std::move(others));
    }
    place();
    return std::move(made_);
  }

 private:
  bool look_up(std::size_t i) {
    const Timed timed(statistics_.disk_us);
    auto found = session_.find(keys_[i]);
    if (!found || !CodeImage::read(*found)) return false;
    images_[i] = std::move(*found);
    ++statistics_.from_disk;
    return true;
  }

  /// Makes one spec's code, if it is wanted and no other process is about it; false when one is.
  bool take_turn(std::size_t i) {
    if (!is_wanted_(i)) {
      made_[i].is_unwanted = true;
      return true;
    }
    if (!session_.claim(keys_[i])) return false;
    // Whoever had the claim before has stored it.
    if (!look_up(i)) generate(i);
    session_.give_back(keys_[i]);
    return true;
  }

  void generate(std::size_t i) {
    try {
      images_[i] = Generator::instance().generate(*specs_[i], urgency_, statistics_);
    } catch (const CompilerError& error) {
      made_[i].failure = error;
      return;
    }
    ++statistics_.generated;
    const Timed timed(statistics_.disk_us);
    session_.store(keys_[i], images_[i]);
  }

  void wait_for(std::vector<std::size_t> others) {
    auto last_news = Clock::now();
    while (!others.empty() && Clock::now() - last_news < longest_wait) {
      {
        const Timed timed(statistics_.waiting_us);
        std::this_thread::sleep_for(look_again);
      }
      if (std::erase_if(others, [&](std::size_t i) { return take_turn(i); }) > 0) last_news = Clock::now();
    }
    for (std::size_t i : others)
      if (!look_up(i)) generate(i);
  }

  void place() {
    const Timed timed(statistics_.placing_us);
    std::vector<CodeImage> images;
    std::vector<std::size_t> whose;
    for (std::size_t i = 0; i < images_.size(); ++i) {
      if (auto image = CodeImage::read(images_[i])) {
        images.push_back(*image);
        whose.push_back(i);
      }
    }
    try {
      auto placed = CodeArena::instance().place(images);
      for (std::size_t k = 0; k < whose.size(); ++k) made_[whose[k]].code = std::move(placed[k]);
    } catch (const CompilerError& error) {
      for (std::size_t i : whose) made_[i].failure = error;
    }
  }

  std::span<const Spec* const> specs_;
  Urgency urgency_;
  const std::function<bool(std::size_t)>& is_wanted_;
  Statistics& statistics_;
  DiskCache::Session session_;
  std::vector<CacheKey> keys_;
  std::vector<std::vector<std::byte>> images_;
  std::vector<MadeCode> made_;
};

CodeMaker::CodeMaker() : cache_(DiskCache::from_environment()) {
  if (can_make()) identity_ = std::string(generator_identity) + "\n" + host_cpu() + "\n";
}

std::vector<MadeCode> CodeMaker::make(std::span<const Spec* const> specs, Urgency urgency,
                                      const std::function<bool(std::size_t)>& is_wanted, Statistics& statistics) const {
  if (!can_make()) return std::vector<MadeCode>(specs.size());
  return Batch(*this, specs, urgency, is_wanted, statistics).make();
}

}  // namespace kplan::jit
