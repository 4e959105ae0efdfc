// What the facts about a store mean (docs/guide/doctor.md). Pure.
#pragma once

#include <functional>
#include <outbox/relay.hpp>
#include <string>
#include <string_view>

#include "health/finding.hpp"
#include "store/diagnosis.hpp"

namespace outbox::health {

/// How the store is named in commands.
struct StoreName {
  std::string shown;  ///< Its address without passwords.
  /// " --store sqlite:shop.db"; empty if commands need none. A configuration file, " -c shop.toml",
  /// comes first.
  std::string options;

  /// Returns a command such as "outbox migrate --store sqlite:shop.db".
  [[nodiscard]] std::string command(std::string_view words) const {
    return "outbox " + std::string(words) + options;
  }
};

/// All findings about the store itself.
[[nodiscard]] Findings judge(const store::Diagnosis& diagnosis, const StoreName& name);
/// Findings about how relays with this setting learn of new events.
void judge_feed(const store::Diagnosis& diagnosis, Feed feed, const StoreName& name,
                Findings& findings);
/// Whether the deliveries in the store can be read: its schema is that of this program, this login
/// may read it, and the server is a primary.
[[nodiscard]] bool can_be_read(const store::Diagnosis& diagnosis);

// The parts of judge().
void judge_version(const Result<store::SchemaState>& version, const StoreName& name,
                   Findings& findings);
/// Returns the command that runs the statements. If `makes`, they may make an object, and have to
/// run as the owner of the others.
using Restore = std::function<std::string(const std::string& statements, bool makes)>;
/// Judges what the schema consists of.
void judge_schema(const Result<store::SchemaFacts>& facts, const StoreName& name,
                  const Restore& restore, Findings& findings);
void judge_clock(const Result<store::ClockFacts>& clock, Findings& findings);

void judge(const store::ServerFacts& server, const StoreName& name, Findings& findings);
void judge(const store::PostgresFacts& facts, const store::LogFacts& log, Findings& findings);
void judge(const store::PostgresFacts& facts, const std::vector<store::SequenceFacts>& behind,
           Findings& findings);
void judge(const store::PostgresFacts& facts, const std::vector<store::RoleFacts>& roles,
           Findings& findings);
void judge(const store::PostgresFacts& facts, const store::PartitionFacts& partitions,
           Findings& findings);
void judge(const store::PostgresFacts& facts, const store::VacuumFacts& vacuum, Findings& findings);
void judge(const store::PostgresFacts& facts, const std::vector<store::HolderFacts>& holders,
           Findings& findings);
void judge(const store::PostgresFacts& facts, const store::WakeFacts& wake, Findings& findings);
void judge(const store::PostgresFacts& facts, const store::ConnectionFacts& connections,
           Findings& findings);
/// Judges whether events get their standbys, for relays with PublishAfter::replicated.
void judge_standbys(const RelayOptions& relay, const store::PostgresFacts& facts,
                    Findings& findings);
void judge(const store::AdoptionsFacts& adoptions, const StoreName& name, Findings& findings);
/// Judges the sizes of the tables and of the WAL, and how much WAL replication slots keep.
void judge_disk(const store::PostgresFacts& facts, Findings& findings);

void judge(const store::SqliteFacts& facts, const StoreName& name, Findings& findings);
/// Judges how much space is free on the disk of the file.
void judge_disk(const store::SqliteFacts& facts, Findings& findings);

}  // namespace outbox::health
