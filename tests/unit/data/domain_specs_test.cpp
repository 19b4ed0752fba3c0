#include "tessera/data/domain_specs.h"

#include <gtest/gtest.h>

#include "tests/unit/refusal.h"

namespace tessera::domain_specs_test {
namespace {

using Specs = std::vector<std::string>;

Specs specs_in(const std::string& text, int num_domains) {
  Specs specs;
  for (const DomainSpec& domain : specs_of_domains(text, num_domains)) specs.push_back(domain.spec);
  return specs;
}

TEST(DomainSpecs, AreInTheOrderOfTheDomains) {
  EXPECT_EQ(specs_in("target2=c;source=synthetic:samples=4,classes=2;target1=folder:b", 3),
            (Specs{"synthetic:samples=4,classes=2", "folder:b", "c"}));
}

/// Options have equals signs, too, and files any name.
TEST(DomainSpecs, ADataSetWithoutANameIsTheSources) {
  for (const char* spec : {"synthetic:samples=4", "folder:a;b", "sources=1", "target=2"})
    EXPECT_EQ(specs_in(spec, 1), Specs{spec});
  EXPECT_EQ(specs_in("source=folder:a", 1), Specs{"folder:a"});
}

TEST(DomainSpecs, SayInWhichOrderSamplesAreRead) {
  const std::vector<DomainSpec> domains =
      specs_of_domains("source=files:a,b,shuffle=no,classes=2;target1=c,shuffle=yes;target2=d", 3);
  EXPECT_EQ(domains[0].spec, "files:a,b,classes=2");
  EXPECT_EQ(domains[0].order, BatchOrder::kSequential);
  EXPECT_EQ(domains[1].spec, "c");
  for (int shuffled : {1, 2}) EXPECT_EQ(domains[shuffled].order, BatchOrder::kShuffled);
  EXPECT_EQ(specs_of_domains("folder:a,shuffle=no", 1)[0].order, BatchOrder::kSequential);
  EXPECT_EQ(refusal([] { parse_domain_specs("source=a;target1=b,shuffle=maybe"); }),
            "[--data] target1: shuffle=maybe is not legal; use shuffle=yes or shuffle=no");
}

TEST(DomainSpecs, RefuseWhatDoesNotFitTheNetwork) {
  EXPECT_EQ(refusal([] { specs_of_domains("folder:a", 2); }),
            "[--data] there is no data for target1, and the network reads an image of each of "
            "source, target1; write --data 'source=...;target1=...'");
  EXPECT_EQ(refusal([] { specs_of_domains("source=a;target1=b;target2=c", 2); }),
            "[--data] the network has no domain target2, it reads source, target1; leave it out, "
            "or give the model targets=2");
  EXPECT_EQ(refusal([] { specs_of_domains("target1=b", 2); }),
            "[--data] there is no data for source, and the network reads an image of each of "
            "source, target1; write --data 'source=...;target1=...'");
}

TEST(DomainSpecs, RefuseWhatIsNotWritten) {
  EXPECT_EQ(refusal([] { parse_domain_specs("source=a;source=b"); }),
            "[--data] source is given twice; write it once");
  EXPECT_EQ(
      refusal([] { parse_domain_specs("source=a;goal=b"); }),
      "[--data] 'goal=b' does not name a domain; write source=...;target1=... with a data set "
      "for each");
  EXPECT_EQ(refusal([] { parse_domain_specs("source=a;target1="); }),
            "[--data] nothing follows target1=; name its data set, target1=folder:PATH");
  EXPECT_EQ(
      refusal([] { parse_domain_specs("source=a;target01=b"); }),
      "[--data] 'target01=b' does not name a domain; write source=...;target1=... with a data "
      "set for each");
}

}  // namespace
}  // namespace tessera::domain_specs_test
