#include "heed/text/moses/truecaser.h"

#include <doctest/doctest.h>

#include "heed/base/error.h"

using namespace heed;

namespace {

std::string truecased(const std::string& model, std::string_view tokens, bool asr = false) {
  std::string out;
  Truecaser::parse(model, "model").apply(tokens, asr, out);
  return out;
}

std::string learn(std::initializer_list<std::string_view> lines, bool first_words = false) {
  TruecaseLearner learner(first_words);
  for (const auto line : lines) learner.add(line);
  return learner.text();
}

std::string undo(std::string_view tokens) {
  std::string out;
  detruecase(tokens, out);
  return out;
}

const std::string kModel = "the (3/4) The (1)\nParis (2/2)\nUS (2/5) us (2) Us (1)\ndog (1/1)\n";

}  // namespace

TEST_CASE("a sentence's first word gets its usual spelling, others keep theirs where it is known") {
  CHECK(truecased(kModel, "The Dog in Paris") == "the dog in Paris");
  CHECK(truecased(kModel, "we saw The DOG") == "we saw The dog");
  CHECK(truecased(kModel, "Us . Us and us") == "US . US and us");
  CHECK(truecased(kModel, "Nobody knows") == "Nobody knows");
  CHECK(truecased(kModel, "") == "");
  CHECK(truecased(kModel, " \t ") == "");
}

TEST_CASE("sentences start after . : ? ! and go on starting behind quotes and opening brackets") {
  CHECK(truecased(kModel, "no . \" The dog") == "no . \" the dog");
  CHECK(truecased(kModel, "( &quot; The dog") == "( &quot; the dog");
  CHECK(truecased(kModel, "no , The dog") == "no , The dog");
  CHECK(truecased(kModel, "&#91; The &#93; The") == "&#91; the &#93; The");
}

TEST_CASE("recognised speech has no case of its own") {
  CHECK(truecased(kModel, "THE DOG FROM PARIS AND US", true) == "the dog from Paris and US");
}

TEST_CASE("factors and tags stay, with the spaces that the script leaves") {
  CHECK(truecased(kModel, "The|DT Dog|NN") == "the|DT dog|NN");
  CHECK(truecased(kModel, "|The The") == "|The The");
  CHECK(truecased(kModel, "<s> The <b>Dog</b> . </s>") == "<s> the<b> dog</b> .</s>");
  CHECK(truecased(kModel, "word|<X>|| The") == "word|<X>|| The");
  CHECK(truecased(kModel, "word| <X><Y>| The") == "word|<Y>|<X> The");
  CHECK(truecased(kModel, "a<b c>d e > f < g") == "a<b c> d e > f < g");
  CHECK(truecased(kModel, "The|<X>|<Y>|| The|<Z>| The") == "the|<X>|<Y>|| The|<Z>| The");
  CHECK(truecased(kModel, "< The <The <b> The <The <") == "< The<The <b> The <The <");
}

TEST_CASE("lines of many tags, or of tags without an end, take time in proportion to their length") {
  const auto repeat = [](std::string_view text, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += text;
    return out;
  };
  for (const std::string& line :
       {repeat("<a ", 2000000) + "b", "<a " + repeat("b ", 1000000) + "b", "a|" + repeat("<b>|", 500000)})
    CHECK(truecased(kModel, line) == line);
}

TEST_CASE("what is no truecase model is said with its line") {
  CHECK_THROWS_WITH_AS(Truecaser::parse("the (1/1)\nno model\n", "file"),
                       "file:2: is no line of a truecase model, such as 'the (3/4) The (1)' (tokenize "
                       "--train-truecaser makes models)",
                       Error);
  CHECK_THROWS_AS(Truecaser::parse("the\n", "file"), Error);
  CHECK_THROWS_AS(Truecaser::parse("the (1/1)\n\n", "file"), Error);
  CHECK_THROWS_WITH_AS(Truecaser::parse("", "file"), "file: is empty (tokenize --train-truecaser makes models)", Error);
  CHECK(Truecaser().empty());
  CHECK(Truecaser() == Truecaser());
  CHECK_FALSE(Truecaser::parse(kModel, "file") == Truecaser());
}

TEST_CASE("words count where no sentence starts, if a letter of theirs has case") {
  CHECK(learn({"The dog saw the Dog , 5 times .", "\" The dog saw"}) ==
        "dog (2/3) Dog (1)\nsaw (2/2)\nthe (1/1)\ntimes (1/1)\n");
  CHECK(learn({"a . The end", "\u4E2D \u4E2D"}) == "end (1/1)\n");
}

TEST_CASE("types stand in the order of their bytes, and of equal counts the one with fewer capitals wins") {
  CHECK(learn({"x B b a Z"}) == "a (1/1)\nb (1/2) B (1)\nZ (1/1)\n");
  CHECK(learn({}) == "");
}

TEST_CASE("first words on demand: whole without a capital, a tenth where they are alone") {
  CHECK(learn({"the dog"}, true) == "dog (1/1)\nthe (1/1)\n");
  CHECK(learn({"The dog"}, true) == "dog (1/1)\n");
  CHECK(learn({"Dog", "Dog", "a dog"}, true) == "a (1/1)\ndog (1/1.2) Dog (0.2)\n");
}

TEST_CASE("a model comes back from its text") {
  const std::string text = learn({"x The dog and the Dog and the cat"});
  CHECK(Truecaser::parse(text, "file").text() == text);
}

TEST_CASE("detruecasing puts a capital at the start of each sentence") {
  CHECK(undo("the dog . it barks : yes") == "The dog . It barks : Yes");
  CHECK(undo("\" the dog \" ( he )") == "\" The dog \" ( he )");
  CHECK(undo("  \u00E9t\u00E9 \t 5 ") == "\u00C9t\u00E9 5");
  CHECK(undo("") == "");
}
