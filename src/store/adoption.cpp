#include "store/adoption.hpp"

namespace outbox::store {
namespace {

std::string trigger_text(const AdoptionRow& row, const char* what) {
  std::string text = "its trigger outbox_adopt ";
  text += what;
  if (!row.fault_at.empty()) text += " on partition " + row.fault_at;
  return text;
}

}  // namespace

const char* layout_text(bool debezium) noexcept {
  return debezium ? "Debezium's" : "written by hand";
}

std::string fault_text(const AdoptionRow& row) {
  switch (row.fault) {
    case AdoptionFault::none: return "";
    case AdoptionFault::dropped:
      return "the table was dropped, or renamed after its trigger was dropped";
    case AdoptionFault::remade: return "the table was dropped and made again, without its trigger";
    case AdoptionFault::replaced: return "another table has its former name, " + row.fault_at;
    case AdoptionFault::no_trigger: return "its trigger outbox_adopt was dropped";
    case AdoptionFault::off: return trigger_text(row, "is disabled");
    case AdoptionFault::replica_only:
      return trigger_text(row, "fires for replicated rows only (ENABLE REPLICA)");
  }
  return "";
}

std::string broken_text(const AdoptionRow& row) {
  const std::string fault = fault_text(row);
  switch (row.fault) {
    case AdoptionFault::none: return "";
    case AdoptionFault::dropped: return fault;
    case AdoptionFault::replaced: return fault + ": rows inserted into that one are in it only";
    default: return fault + ": rows inserted since then are in the table only";
  }
}

}  // namespace outbox::store
