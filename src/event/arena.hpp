// Memory for the strings of a batch of messages: grows without moving what was handed out, is emptied at once and
// reused. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

namespace outbox::event {

class Arena {
 public:
  /// `size` bytes aligned for any pointer-sized type; valid until clear().
  [[nodiscard]] char* allocate(std::size_t size) {
    const std::size_t start = (used_ + kAlign - 1) & ~(kAlign - 1);
    if (start + size > size_) return allocate_in_new_chunk(size);
    used_ = start + size;
    return data_ + start;
  }

  /// Forgets everything. Ordinary chunks are kept for the next batch, up to kKeptBytes.
  void clear() noexcept;

  /// Bytes held, in use or not.
  [[nodiscard]] std::size_t capacity() const noexcept;

 private:
  friend class ArenaText;
  static constexpr std::size_t kAlign = alignof(void*);
  static constexpr std::size_t kChunkBytes = std::size_t{64} << 10U;
  static constexpr std::size_t kKeptBytes = std::size_t{4} << 20U;

  struct Chunk {
    std::unique_ptr<char[]> data;
    std::size_t size{0};
  };

  char* allocate_in_new_chunk(std::size_t size);
  void enter(const Chunk& chunk) noexcept;

  // The open chunk: chunks_[next_ - 1].
  char* data_{nullptr};
  std::size_t size_{0};
  std::size_t used_{0};
  std::vector<Chunk> chunks_;
  std::size_t next_{0};
};

/// Writes one text of unknown length at the end of an arena. Only one at a time; nothing else may allocate meanwhile.
class ArenaText {
 public:
  explicit ArenaText(Arena& arena) noexcept
      : arena_(arena),
        begin_(arena.data_ + arena.used_),
        at_(begin_),
        end_(arena.data_ + arena.size_) {}
  ArenaText(const ArenaText&) = delete;
  ArenaText& operator=(const ArenaText&) = delete;

  void push_back(char c) {
    if (at_ == end_) grow(1);
    *at_++ = c;
  }
  void append(const char* text, std::size_t size) {
    if (size == 0) return;
    std::memcpy(extend(size), text, size);
  }
  void append(std::string_view text) { append(text.data(), text.size()); }
  /// Room for `size` more bytes, which the caller fills.
  [[nodiscard]] char* extend(std::size_t size) {
    if (static_cast<std::size_t>(end_ - at_) < size) grow(size);
    char* const room = at_;
    at_ += size;
    return room;
  }

  /// The text written; valid until the arena is cleared.
  [[nodiscard]] std::string_view finish() noexcept {
    arena_.used_ = static_cast<std::size_t>(at_ - arena_.data_);
    return {begin_, static_cast<std::size_t>(at_ - begin_)};
  }

 private:
  void grow(std::size_t more);

  Arena& arena_;
  char* begin_;
  char* at_;
  char* end_;
};

}  // namespace outbox::event
