#include "tessera/zoo/domains.h"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/ops/conv/linear.h"
#include "tessera/ops/loss/difference.h"
#include "tessera/ops/loss/domain_cross_entropy.h"
#include "tessera/ops/loss/kernel_mean.h"
#include "tessera/ops/loss/scale_invariant_error.h"
#include "tessera/ops/norm/batch_centring.h"
#include "tessera/ops/norm/row_norm.h"
#include "tessera/ops/pointwise/add.h"
#include "tessera/ops/pointwise/gradient_reversal.h"
#include "tessera/ops/pointwise/relu.h"
#include "tessera/zoo/typed_options.h"

namespace tessera {
namespace {

constexpr IntegerOption kTargets{
    "targets", "unlabelled domains; 0: what is learned from the source's labels alone", 0, 64};
constexpr const char* kTargetBatch = "target_batch";
constexpr int64_t kMostSamples = 1 << 20;
constexpr RealOption kGamma{"gamma", "weight of the similarity losses", 0, 1e6};
constexpr RealOption kAlpha{"alpha", "weight of the reconstruction losses", 0, 1e6};
constexpr RealOption kBeta{"beta", "weight of the difference losses", 0, 1e6};
constexpr IntegerOption kStart{"start", "step with which all losses but the task's begin", 0,
                               1'000'000'000};
constexpr IntegerOption kRamp{"ramp", "steps within which their weights grow, 0: at once", 0,
                              1'000'000'000};
constexpr IntegerOption kLambdaRamp{
    "lambda_ramp", "steps within which the gradient reversal grows to 1, 0: at once", 0,
    1'000'000'000};
constexpr int64_t kClassifierUnits = 100;

class DomainsBuilder {
 public:
  DomainsBuilder(const ModelOptions& options, const Shape& input, const DomainParts& parts)
      : options_(options), parts_(parts), input_(input), num_targets_(kTargets.read(options)) {
    batches_ = read_batches();
    similarity_ = options.choice("similarity", {"dann", "pairwise", "mmd"});
  }

  Graph build() {
    DomainCodes source = add_domain(0);
    for (int64_t target = 1; target <= num_targets_; ++target)
      add_similarity_between(source, add_domain(target), target);
    return std::move(graph_);
  }

 private:
  /// Of the source and of each target.
  std::vector<int64_t> read_batches() const {
    std::vector<int64_t> batches{input_[0]};
    const std::vector<std::string> given = split_text(options_.text(kTargetBatch), '/');
    if (given.size() != 1 && std::ssize(given) != num_targets_)
      throw_error<InvalidInput>(
          "[model] target_batch has {}, and there are {}; give one number for all, or one for "
          "each with '/' between",
          counted(std::ssize(given), "number"), counted(num_targets_, "target"));
    for (int64_t target = 0; target < num_targets_; ++target) {
      const std::string& text = given[given.size() == 1 ? 0 : target];
      const int64_t batch = read_number<int64_t>(text).value_or(-1);
      if (batch < 0 || batch > kMostSamples)
        throw_error<InvalidInput>(
            "[model] target_batch={} is not legal; use whole numbers from 0 "
            "to {}, 0 for as many samples as of the source",
            options_.text(kTargetBatch), kMostSamples);
      batches.push_back(batch == 0 ? input_[0] : batch);
    }
    return batches;
  }
  Shape shape_of(int64_t domain) const {
    Shape shape = input_;
    shape[0] = batches_[domain];
    return shape;
  }
  /// The weight of a loss, by its option.
  StepFunction weight(const RealOption& option) const {
    return {option.read(options_), kStart.read(options_), kRamp.read(options_)};
  }
  /// A domain's share of the rows that a classifier of these domains sees.
  double share(int64_t domain, const std::vector<int64_t>& domains) const {
    double rows = 0;
    for (int64_t each : domains) rows += static_cast<double>(batches_[each]);
    return static_cast<double>(batches_[domain]) / rows;
  }

  DomainCodes add_domain(int64_t domain) {
    const std::string image = domain == 0 ? "image" : fmt::format("image{}", domain);
    const ValueId x = graph_.add_input(image, ValueType::image(shape_of(domain)));
    const DomainCodes codes = parts_.encode(graph_, x);
    if (domain == 0) parts_.solve(graph_, codes);
    if (num_targets_ == 0) return codes;
    if (similarity_ == "dann") classify(codes.features, "domain", domain, all_domains());
    if (parts_.encode_private) separate(codes, domain);
    return codes;
  }

  void add_similarity_between(const DomainCodes& source, const DomainCodes& target,
                              int64_t number) {
    if (similarity_ == "mmd")
      mmd_loss(graph_, source.features, target.features, fmt::format("mmd{}", number),
               {.weight = weight(kGamma)});
    if (similarity_ != "pairwise") return;
    const std::string classifier = fmt::format("domain{}", number);
    classify(source.features, classifier, 0, {0, number});
    classify(target.features, classifier, number, {0, number});
  }

  std::vector<int64_t> all_domains() const {
    std::vector<int64_t> domains;
    for (int64_t domain = 0; domain <= num_targets_; ++domain) domains.push_back(domain);
    return domains;
  }

  /// The loss of a classifier that says from which of `domains` the features come: from `domain`.
  void classify(ValueId features, const std::string& classifier, int64_t domain,
                const std::vector<int64_t>& domains) {
    const StepFunction lambda(1, 0, kLambdaRamp.read(options_));
    ValueId x = gradient_reversal(graph_, features, classifier + ".reversal", lambda);
    x = linear(graph_, x, classifier + ".fc1", {.out_features = kClassifierUnits});
    x = relu(graph_, x, classifier + ".relu1");
    x = linear(graph_, x, classifier + ".fc2", {.out_features = std::ssize(domains)});
    const auto label = std::find(domains.begin(), domains.end(), domain) - domains.begin();
    domain_cross_entropy(graph_, x, label, fmt::format("{}.loss{}", classifier, domain),
                         {.weight = weight(kGamma) * share(domain, domains)});
  }

  /// The private code, its difference from the shared one, and the image from both.
  void separate(const DomainCodes& codes, int64_t domain) {
    const std::string prefix = fmt::format("private{}.", domain);
    const ValueId own = parts_.encode_private(graph_, codes.image, prefix);
    check_shape(own, "the private code", codes.shared, "the shared one");
    const Shape shape = graph_.type(own).shape();
    const auto rows = static_cast<double>(Box::whole(shape).volume() / shape[1]);
    difference_loss(graph_, rows_of(codes.shared, "shared"), rows_of(own, prefix + "code"),
                    fmt::format("difference{}", domain),
                    {.weight = weight(kBeta) * (1 / (rows * rows))});
    const ValueId code = add(graph_, codes.shared, own, fmt::format("code{}", domain));
    const ValueId again = parts_.decode(graph_, code, codes);
    check_shape(again, "what the decoder makes", codes.image, "the image");
    scale_invariant_error(graph_, again, codes.image, fmt::format("reconstruction{}", domain),
                          {.weight = weight(kAlpha)});
  }

  /// Of what users' modules make.
  void check_shape(ValueId made, const char* what, ValueId wanted, const char* other) const {
    const Shape shape = graph_.type(made).shape(), due = graph_.type(wanted).shape();
    if (shape != due)
      throw_error<InvalidInput>("[domains] {} is {}, {} is {}; make both of one shape", what,
                                to_string(shape), other, to_string(due));
  }

  ValueId rows_of(ValueId code, const std::string& name) {
    return row_norm(graph_, batch_centring(graph_, code, name + ".centred"), name + ".rows");
  }

  const ModelOptions& options_;
  const DomainParts& parts_;
  Shape input_;
  int64_t num_targets_;
  std::vector<int64_t> batches_;  // of the domains
  std::string similarity_;
  Graph graph_;
};

}  // namespace

std::vector<OptionInfo> with_domains(std::vector<OptionInfo> options, double gamma) {
  options.push_back(kTargets.info(1));
  options.push_back({kTargetBatch, "0",
                     "samples of a target in a batch, or of each: 8/4; 0: as many as of the "
                     "source"});
  options.push_back({"similarity", "dann",
                     "what pulls shared codes together; dann: one classifier of all domains behind "
                     "a gradient reversal, pairwise: one of each target and the source, mmd: "
                     "maximum mean discrepancy"});
  options.push_back(kGamma.info(gamma));
  options.push_back(kStart.info(0));
  options.push_back(kRamp.info(0));
  options.push_back(kLambdaRamp.info(0));
  return options;
}

std::vector<OptionInfo> with_separation(std::vector<OptionInfo> options) {
  options.push_back(kAlpha.info(0.1));
  options.push_back(kBeta.info(0.05));
  return options;
}

Graph build_domains(const ModelOptions& options, const Shape& input, const DomainParts& parts) {
  return DomainsBuilder(options, input, parts).build();
}

}  // namespace tessera
