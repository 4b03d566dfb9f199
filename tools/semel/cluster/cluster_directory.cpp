// `semel cluster init | recover`: changes the directory of a node that is not running.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "net/config/config_file.hpp"
#include "net/group/node_group.hpp"
#include "net/settings/settings.hpp"
#include "replication/node/recovery.hpp"
#include "tools/semel/cluster/cluster_command.hpp"
#include "tools/semel/shared/output.hpp"
#include "tools/semel/shared/units.hpp"

namespace semel::tool {
namespace {

using net::Setting;

class InitAction final : public ClusterAction {
 public:
  explicit InitAction(CLI::App& cluster)
      : ClusterAction(cluster, "init", "Make a directory that of a first member of a new group") {
    app_->add_option("--config", sources_.file, "Configuration file of the node (TOML)")
        ->type_name("FILE");
    add("--dir", Setting::dir, "Directory of the node", "DIR");
    add("--node-id", Setting::node_id, "Number of the node in its group, from 1", "NUMBER");
    add("--cluster-id", Setting::cluster_id, "Identity of the group: 1 to 16 hex digits", "HEX");
    add("--peer", Setting::peer,
        "First members, each as id=host:port with the address for the other nodes, and behind a "
        "comma that for clients. The same on all nodes",
        "WORDS");
    set_footer(
        "As `semel node --cluster-init`. Once for each first member, before its first start: a "
        "node that\nhas lost its disk is added under another number.");
  }

  [[nodiscard]] Exit run() override {
    net::Settings settings;
    const net::Findings findings = net::load_config(sources_, settings);
    for (const std::string& line : findings.warnings) print_error("semel cluster init: {}\n", line);
    for (const std::string& line : findings.errors) print_error("semel cluster init: {}\n", line);
    if (!findings.errors.empty()) return Exit::usage;
    net::NodeGroup group{settings};
    if (!group.is_wanted()) return fail(usage_error("--node-id is needed"));
    if (const Status done = group.prepare(); !done) return fail(done.error());
    return write_out(fmt::format("{}: node {} of a new group\n", settings.text(Setting::dir),
                                 settings.integer(Setting::node_id)));
  }

 private:
  void add(const char* name, Setting setting, const char* what, const char* kind) {
    const auto take = [this, name, setting](const CLI::results_t& given) {
      std::string text;
      for (const std::string& word : given) text.append(text.empty() ? "" : " ").append(word);
      sources_.flags.push_back({setting, std::move(text), {net::Origin::Kind::flag, name}});
      return true;
    };
    app_->add_option(name, take, what)
        ->type_name(kind)
        ->multi_option_policy(setting == Setting::peer ? CLI::MultiOptionPolicy::TakeAll
                                                       : CLI::MultiOptionPolicy::Throw);
  }
  net::ConfigSources sources_;
};

class RecoverAction final : public ClusterAction {
 public:
  explicit RecoverAction(CLI::App& cluster)
      : ClusterAction(cluster, "recover",
                      "Let one node go on alone after the majority of its group was lost") {
    app_->add_flag("--force-single", force_single_, "Make a new group of this node alone")
        ->required();
    app_->add_option("--dir", options_.directory, "Directory of the node, which must not run")
        ->type_name("DIR")
        ->required();
    app_->add_option("--cluster-id", cluster_id_,
                     "Identity of the new group: 1 to 16 hex digits, not that of the old one")
        ->type_name("HEX")
        ->required();
    app_->add_option("--node-id", options_.node_id, "Number that the node must have")
        ->type_name("NUMBER");
    app_->add_option("--address", options_.address,
                     "Its address for other nodes, and behind a comma that for clients. Default: "
                     "as before")
        ->type_name("ADDRESS");
    app_->add_flag("--yes", is_sure_,
                   "Do it. Without this flag nothing is changed; what would be lost is reported");
    set_footer(
        "Records that only the lost nodes had are lost, and the numbers (epochs, fences) of those\n"
        "claims are given out again. Use it only when a majority of the disks cannot be had "
        "again,\n"
        "on the node that has the most entries. Add all others anew, with empty directories.");
  }

  [[nodiscard]] Exit run() override {
    std::uint64_t id = 0;
    const char* const end = cluster_id_.data() + cluster_id_.size();
    const auto read = std::from_chars(cluster_id_.data(), end, id, 16);
    if (cluster_id_.empty() || read.ec != std::errc{} || read.ptr != end || id == 0) {
      return fail(usage_error("--cluster-id: '" + cluster_id_ +
                              "' is not a number of 1 to 16 hex digits, and not 0"));
    }
    options_.cluster_id = id;
    const auto found = replication::look_before_recovery(options_);
    if (!found.ok()) return fail(whole(found.error()));
    print(*found);
    if (!is_sure_) {
      print_out("Nothing was changed. Say --yes to do it.\n");
      return finish_out() == Exit::ok ? Exit::usage : Exit::file;
    }
    const auto done = replication::recover_single(options_);
    if (!done.ok()) return fail(whole(done.error()));
    print_out("{}: node {} is the only member of cluster {}. Start it with --cluster-id {}\n",
              options_.directory, done->node_id, cluster_id_, cluster_id_);
    return finish_out();
  }

 private:
  /// The code may say more than the detail.
  static Error whole(const Error& error) {
    const bool is_usage = error.code == ErrorCode::bad_option;
    return {error.code, is_usage ? error.detail : error.message()};
  }

  void print(const replication::RecoveryFacts& found) const {
    if (found.is_begun) {
      print_out("{}: a recovery of node {} was cut off, and is ended now.\n", options_.directory,
                found.node_id);
      return;
    }
    std::string members;
    for (const replication::Member& each : found.members) {
      members += fmt::format("{}{} ({})", members.empty() ? "" : ", ", each.id, each.address);
    }
    print_out(
        "{}: node {} of cluster {:x}, with {} entries, the last one of term {}, and the snapshot "
        "of "
        "entry {}.\n"
        "Members of the old group: {}.\n"
        "WARNING: this makes a new group, cluster {}, of node {} at {} alone.\n"
        "  - What it has is kept, also what was perhaps never committed.\n"
        "  - What only other nodes had is LOST: claims that were acknowledged may be granted "
        "again,\n    and their numbers (epochs, fences) may be given to others.\n"
        "  - The other nodes cannot take part with their directories, now or later.\n",
        options_.directory, found.node_id, found.cluster_id, format_count(found.last), found.term,
        format_count(found.snapshot), members.empty() ? "not known" : members, cluster_id_,
        found.node_id, found.address);
  }

  replication::RecoveryOptions options_{};
  std::string cluster_id_;
  bool force_single_ = false;
  bool is_sure_ = false;
};

}  // namespace

void add_directory_actions(CLI::App& cluster, ClusterActions& actions) {
  actions.push_back(std::make_unique<InitAction>(cluster));
  actions.push_back(std::make_unique<RecoverAction>(cluster));
}

}  // namespace semel::tool
