#include "config/reading.hpp"

#include <map>
#include <variant>

#include "config/store_url.hpp"
#include "store/url.hpp"

namespace outbox::config {
namespace {

using Table = std::map<std::string, std::string>;

bool resolve_in_place(Node& node, const std::string& path, Reading& reading) {
  bool good = true;
  if (node.type == Node::Type::string && has_references(node.text)) {
    auto text = resolve_setting(path, node.text, reading.directory());
    if (text) {
      node.text = *text;
    } else {
      reading.complain(path, node.at, text.error());
      good = false;
    }
  }
  for (Node& item : node.items) good = resolve_in_place(item, path, reading) && good;
  for (Member& member : node.members)
    good = resolve_in_place(member.value, path + "." + member.key, reading) && good;
  return good;
}

}  // namespace

Result<std::string> resolve_setting(const std::string& path, const std::string& text,
                                    const std::string& directory) {
  return path == "store.url" ? resolve_store_url(text, directory) : resolve(text, directory);
}

std::optional<Node> resolve_node(const Node& node, const std::string& path, Reading& reading) {
  Node resolved = node;
  if (!resolve_in_place(resolved, path, reading)) return std::nullopt;
  return resolved;
}

std::string presentable(const Setting& setting, Slot effective, Slot written, Notation notation) {
  if (setting.secret) return quote(store::shown_url(*std::get<std::string*>(effective)));
  if (setting.kind != Kind::table) return show(setting, written, notation);
  Table masked = *std::get<Table*>(written);
  for (auto& [name, value] : masked) {
    if (is_secret_name(name)) value = kMask;
  }
  return show(setting, &masked, notation);
}

}  // namespace outbox::config
