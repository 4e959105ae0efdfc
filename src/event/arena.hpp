// Memory for the strings of a batch of messages. Allocations stay in place until all are released
// together. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <memory_resource>
#include <string>
#include <string_view>

namespace outbox::event {

class Arena {
 public:
  /// `size` bytes, aligned for any pointer-sized type and valid until clear().
  [[nodiscard]] char* allocate(std::size_t size) {
    return static_cast<char*>(memory_.allocate(size, alignof(void*)));
  }
  /// Releases all allocations.
  void clear() noexcept {
    memory_.release();
    text_.clear();
    if (text_.capacity() > kKeptBytes) text_.shrink_to_fit();
  }

 private:
  friend class ArenaText;
  /// Enough for what 1,000 usual messages need beside their payloads, without using the heap.
  static constexpr std::size_t kFirstBytes = std::size_t{256} << 10U;
  /// A larger buffer is freed by clear(): one large payload must not hold its memory for good.
  static constexpr std::size_t kKeptBytes = std::size_t{1} << 20U;

  std::unique_ptr<char[]> first_{new char[kFirstBytes]};
  std::pmr::monotonic_buffer_resource memory_{first_.get(), kFirstBytes};
  std::pmr::string text_;  ///< The buffer of an ArenaText.
};

/// Writes one text of unknown length into an arena. Only one ArenaText may exist at a time.
class ArenaText {
 public:
  explicit ArenaText(Arena& arena) noexcept : arena_(arena) { arena_.text_.clear(); }
  void push_back(char c) { arena_.text_.push_back(c); }
  void append(const char* text, std::size_t size) { arena_.text_.append(text, size); }
  void append(std::string_view text) { arena_.text_.append(text); }
  [[nodiscard]] char* extend(std::size_t size) {
    const std::size_t at = arena_.text_.size();
    arena_.text_.resize(at + size);
    return arena_.text_.data() + at;
  }
  /// The text written; valid until the arena is cleared.
  [[nodiscard]] std::string_view finish() {
    char* const kept = arena_.allocate(arena_.text_.size());
    std::memcpy(kept, arena_.text_.data(), arena_.text_.size());
    return {kept, arena_.text_.size()};
  }

 private:
  Arena& arena_;
};

}  // namespace outbox::event
