#include "event/arena.hpp"

#include <algorithm>

namespace outbox::event {

void Arena::enter(const Chunk& chunk) noexcept {
  data_ = chunk.data.get();
  size_ = chunk.size;
  used_ = 0;
}

char* Arena::allocate_in_new_chunk(std::size_t size) {
  // A kept chunk that is too small is passed over; it is used again after clear().
  while (next_ < chunks_.size() && chunks_[next_].size < size) ++next_;
  if (next_ == chunks_.size()) {
    const std::size_t bytes = std::max(size, kChunkBytes);
    chunks_.push_back({.data = std::unique_ptr<char[]>(new char[bytes]), .size = bytes});
  }
  enter(chunks_[next_++]);
  used_ = size;
  return data_;
}

void Arena::clear() noexcept {
  std::size_t kept = 0;
  std::erase_if(chunks_, [&kept](const Chunk& chunk) {
    const bool keep = chunk.size == kChunkBytes && kept + chunk.size <= kKeptBytes;
    if (keep) kept += chunk.size;
    return !keep;
  });
  next_ = 0;
  data_ = nullptr;
  size_ = 0;
  used_ = 0;
}

std::size_t Arena::capacity() const noexcept {
  std::size_t bytes = 0;
  for (const auto& chunk : chunks_) bytes += chunk.size;
  return bytes;
}

void ArenaText::grow(std::size_t more) {
  const auto written = static_cast<std::size_t>(at_ - begin_);
  // Twice what is there: a long text is moved a logarithmic number of times.
  const std::size_t wanted =
      std::max(written + more, std::min(2 * written, written + more + (std::size_t{8} << 20U)));
  char* const moved = arena_.allocate_in_new_chunk(wanted);
  if (written != 0) std::memcpy(moved, begin_, written);
  begin_ = moved;
  at_ = moved + written;
  end_ = arena_.data_ + arena_.size_;
}

}  // namespace outbox::event
