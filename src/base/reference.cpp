#include "base/reference.hpp"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/text_file.hpp"

namespace outbox {
namespace {

constexpr std::string_view kOpen = "${";
constexpr std::string_view kEscaped = "$${";
constexpr std::string_view kFileReference = "${file:";
constexpr std::size_t kLargestSecret = std::size_t{1} << 20U;

Result<std::string> from_environment(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  if (value == nullptr) {
    return fail(Errc::not_found, "${env:" + name + "}: the environment variable is not set",
                "set " + name);
  }
  return std::string(value);
}

Result<std::string> from_file(const std::string& path, const std::string& directory) {
  const std::string shown = "${file:" + path + "}";
  if (path.starts_with('~')) {
    return fail(Errc::invalid_argument, shown + ": begins with ~, which only a shell expands",
                "write the directory out");
  }
  const std::string full =
      path.starts_with('/') || directory.empty() ? path : directory + "/" + path;
  auto file = read_text_file(full, kLargestSecret);
  if (!file)
    return fail(file.error().code, shown + ": " + file.error().message,
                "check the path and its permissions");
  if ((file->mode & (S_IRGRP | S_IROTH)) != 0) {
    return fail(Errc::permission_denied, shown + ": the file can be read by others",
                "chmod 600 " + full);
  }
  if (file->text.ends_with('\n')) file->text.pop_back();
  if (file->text.ends_with('\r')) file->text.pop_back();
  return std::move(file->text);
}

Result<std::string> resolve_one(std::string_view inside, const std::string& directory) {
  if (inside.starts_with("env:")) return from_environment(std::string(inside.substr(4)));
  if (inside.starts_with("file:")) return from_file(std::string(inside.substr(5)), directory);
  return fail(Errc::invalid_argument, "${" + std::string(inside) + "}: unknown kind of reference",
              "use ${env:NAME} or ${file:PATH}; write $${ for a literal ${");
}

}  // namespace

bool has_references(const std::string& text) { return text.find(kOpen) != std::string::npos; }

std::string literal(std::string_view text) {
  std::string out(text);
  for (std::size_t at = 0; (at = out.find(kOpen, at)) != std::string::npos; at += kEscaped.size())
    out.insert(at, "$");
  return out;
}

std::string without_references(std::string_view text) {
  std::string out;
  while (true) {
    const std::size_t begin = text.find("${");
    out += text.substr(0, begin);
    if (begin == std::string_view::npos) return out;
    const std::size_t end = text.find('}', begin);
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

std::string anchored_references(const std::string& text, const std::string& directory) {
  std::string out;
  std::size_t at = 0;
  while (true) {
    const std::size_t begin = text.find(kFileReference, at);
    if (begin == std::string::npos) return out.append(text, at);
    const std::size_t path = begin + kFileReference.size();
    out.append(text, at, path - at);
    at = path;
    const bool literal = begin > 0 && text[begin - 1] == '$';
    if (!literal && path < text.size() && text[path] != '/' && text[path] != '~')
      out.append(std::filesystem::absolute(directory).lexically_normal()).append("/");
  }
}

Result<std::string> resolve(const std::string& text, const std::string& directory) {
  return resolve(text, directory,
                 [](auto /*before*/, auto /*after*/, auto value) { return std::string(value); });
}

Result<std::string> resolve(const std::string& text, const std::string& directory, const Fit& fit) {
  std::string out;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::string_view rest = std::string_view(text).substr(at);
    if (rest.starts_with(kEscaped)) {
      out += kOpen;
      at += kEscaped.size();
      continue;
    }
    if (!rest.starts_with(kOpen)) {
      out += text[at++];
      continue;
    }
    const std::size_t end = rest.find('}');
    if (end == std::string_view::npos) {
      return fail(Errc::invalid_argument, "a reference is not closed",
                  "write ${env:NAME} or ${file:PATH}");
    }
    auto value = resolve_one(rest.substr(kOpen.size(), end - kOpen.size()), directory);
    if (!value) return value;
    out += fit(std::string_view(text).substr(0, at), rest.substr(end + 1), *value);
    at += end + 1;
  }
  return out;
}

}  // namespace outbox
