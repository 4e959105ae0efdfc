// Every SQL statement of the program on SQLite, by name. Each begins with a comment that names its purpose, which
// error messages show. Text, index and cost: queries.cpp.
#pragma once

#include <string_view>

namespace outbox::store::sqlite::query {

// Connections and transactions.
extern const std::string_view kNoMemoryMap;
extern const std::string_view kSyncFull;
extern const std::string_view kSyncNormal;
extern const std::string_view kBegin;
extern const std::string_view kCommit;
extern const std::string_view kRollback;
extern const std::string_view kSavepoint;
extern const std::string_view kRollbackToSavepoint;
extern const std::string_view kReleaseSavepoint;
extern const std::string_view kConnectStatements;

// Schema.
extern const std::string_view kHasMigrations;
extern const std::string_view kMigrations;
extern const std::string_view kRecordMigration;
extern const std::string_view kEncoding;
extern const std::string_view kJournalMode;
extern const std::string_view kUseWal;
extern const std::string_view kFarthestPosition;

// The log.
extern const std::string_view kInsertEvent;
extern const std::string_view kReadPage;
extern const std::string_view kDataVersion;
extern const std::string_view kNewestSeq;
extern const std::string_view kCountAfter;
extern const std::string_view kFirstAfter;
extern const std::string_view kTruncateWal;
extern const std::string_view kCheckpoint;

// Progress.
extern const std::string_view kNewestCursor;
extern const std::string_view kAppendSettlement;
extern const std::string_view kSettledTotals;

// Membership.
extern const std::string_view kOwner;
extern const std::string_view kRaiseGeneration;
extern const std::string_view kGeneration;
extern const std::string_view kDropOwner;
extern const std::string_view kBeat;
extern const std::string_view kWriteRelay;
extern const std::string_view kClaim;
extern const std::string_view kLeave;
extern const std::string_view kForgetRelays;
extern const std::string_view kRelays;

// Subscriptions.
extern const std::string_view kIdentity;
extern const std::string_view kSubscriptions;
extern const std::string_view kSubscriptionByName;
extern const std::string_view kCreateSubscription;
extern const std::string_view kChangeSubscription;
extern const std::string_view kFirstSettlement;
extern const std::string_view kPause;
extern const std::string_view kResume;
extern const std::string_view kStop;
extern const std::string_view kReportTrouble;

}  // namespace outbox::store::sqlite::query
