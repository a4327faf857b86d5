// Tests requests: parsing, rejection and access.
#include "monitor/http/router.hpp"
#include "monitor/model/action.hpp"
#include "monitor/model/hub.hpp"
#include "monitor/model/json_input.hpp"
#include "monitor/model/settings.hpp"

#include <gtest/gtest.h>

#include <random>

namespace score::monitor {
namespace {

TEST(Url, ParsesTargets) {
  const auto target = parse_target("/a%20b/c?x=1&y=%2F+z&flag");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->path, "/a b/c");
  EXPECT_EQ(target->query, (Query{{"x", "1"}, {"y", "/ z"}, {"flag", ""}}));
  EXPECT_EQ(parse_target("/a?b=1#c")->query, (Query{{"b", "1"}}));
}

TEST(Url, RejectsPathsOutsideTheDirectory) {
  for (const char* bad :
       {"",          "a",  "http://x/", "*",    "/..",      "/../x",     "/a/../b",    "/%2e%2e/x",
        "/a/%2E%2e", "/.", "/./a",      "//x",  "/a//b",    "/a\\b",     "/%5c",       "/%00",
        "/%0a",      "/%", "/%1",       "/%zz", "/a?b=%0d", "/?a=1&a=2", "/a%2f..%2fb"}) {
    EXPECT_FALSE(parse_target(bad)) << bad;
  }
}

TEST(JsonInput, ReadsOneFlatObject) {
  const auto object = parse_object(R"({"a":1,"b":"x","c":true,"d":null,"e":["p","q"]})");
  ASSERT_TRUE(object) << object.error().message();
  EXPECT_EQ(std::get<double>(object->at("a")), 1);
  EXPECT_EQ(std::get<std::vector<std::string>>(object->at("e")).size(), 2U);
  for (const char* bad : {"", "1", "[]", "{\"a\":{}}", "{\"a\":[1]}", "{\"a\":1e999}",
                          "{\"a\":[[]]}", "{\"a\":1} x", "{\"a\":", "nul", "{\"a\":\"\xff\"}"}) {
    EXPECT_FALSE(parse_object(bad)) << bad;
  }
  EXPECT_FALSE(parse_object(std::string(100'000, '[')));
}

TEST(ViewerOptions, RoundsRatesDownToWholeTicks) {
  EXPECT_EQ(*ticks_of_rate(10), 1U);
  EXPECT_EQ(*ticks_of_rate(5), 2U);
  EXPECT_EQ(*ticks_of_rate(4), 3U);
  EXPECT_EQ(*ticks_of_rate(0.1), 100U);
  for (const double bad : {0.0, -1.0, 0.05, 11.0, std::nan("")}) EXPECT_FALSE(ticks_of_rate(bad));
}

TEST(ViewerOptions, ReadsQueriesStrictly) {
  const auto options = read_query({{"rate", "2"}, {"parts", "jobs,nodes"}, {"job", "7"}}, {});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->ticks, 5U);
  EXPECT_TRUE(options->filter.has(Part::Jobs));
  EXPECT_FALSE(options->filter.has(Part::Processes));
  EXPECT_EQ(options->filter.job, JobId(7));
  for (const auto& [name, value] : Query{{"rate", "x"},
                                         {"rate", "1e1"},
                                         {"rate", ""},
                                         {"job", "0"},
                                         {"job", "-1"},
                                         {"parts", "jobs,x"},
                                         {"parts", ""},
                                         {"count", "0"},
                                         {"other", "1"}}) {
    EXPECT_FALSE(read_query({{name, value}}, {})) << name << "=" << value;
  }
}

TEST(ViewerOptions, ReadsMessagesOfSockets) {
  ViewerOptions current;
  current.filter.user = "bob";
  const auto message = read_message(R"({"rate":5,"parts":["jobs"],"job":7,"user":null})", current);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->options.ticks, 2U);
  EXPECT_EQ(message->options.filter.user, "");
  EXPECT_TRUE(*read_message(R"({"pause":true})", current)->pause);
  for (const char* bad : {"{\"rate\":0}", "{\"rate\":\"5\"}", "{\"job\":1.5}", "{\"job\":-1}",
                          "{\"parts\":\"jobs\"}", "{\"pause\":1}", "{\"x\":1}", "[]", ""}) {
    EXPECT_FALSE(read_message(bad, current)) << bad;
  }
}

TEST(Action, NamesMissingAndUnknownFields) {
  EXPECT_EQ(parse_action("set", R"({"name":"quantum","value":"50ms"})")->value, "50ms");
  EXPECT_EQ(parse_action("cancel", R"({"job":7,"grace_s":0.5})")->grace, 500ms);
  EXPECT_TRUE(parse_action("bogus", "{}").error().is(Errc::NotFound));
  for (const auto& [name, body] :
       std::vector<std::pair<const char*, const char*>>{{"set", "{}"},
                                                        {"set", "{\"name\":\"slots\"}"},
                                                        {"set", "{\"name\":\"slots\",\"value\":4}"},
                                                        {"set", "{\"name\":7,\"value\":\"4\"}"},
                                                        {"cancel", "{\"job\":0}"},
                                                        {"cancel", "{\"job\":1,\"x\":2}"},
                                                        {"cancel", "{\"job\":1,\"grace_s\":-1}"},
                                                        {"drain", "{\"reason\":\"x\"}"},
                                                        {"logout", "{\"a\":1}"},
                                                        {"set", ""}}) {
    EXPECT_TRUE(parse_action(name, body).error().is(Errc::Malformed)) << name << body;
  }
}

// ---- access -------------------------------------------------------------------------------------

class RouterTest : public ::testing::Test {
 protected:
  RouterTest() {
    rules_.hosts = {"127.0.0.1:80", "localhost:80"};
    rules_.origins = {"http://127.0.0.1:80", "http://localhost:80"};
    const auto token = logins_.offer({UserId(5), "eve"}, now_);
    session_ = *logins_.redeem(*token, now_);
  }

  Request get(std::string target) const {
    Request request;
    request.method = "GET";
    request.target = std::move(target);
    request.host = "127.0.0.1:80";
    return request;
  }

  Request login() const {
    Request request = get("/login");
    request.method = "POST";
    request.origin = "http://127.0.0.1:80";
    request.body = "token=x";
    return request;
  }

  Request post() const {
    Request request = get("/api/v1/admin/set");
    request.method = "POST";
    request.origin = "http://127.0.0.1:80";
    request.cookie = "other=1; scored=" + session_.cookie;
    request.csrf = session_.csrf;
    request.content_type = "application/json; charset=utf-8";
    return request;
  }

  int status(const Request& request) {
    const auto routed = route(request, rules_, logins_, now_);
    const auto* refusal = std::get_if<HttpError>(&routed);
    return refusal == nullptr ? 200 : refusal->status;
  }

  std::uint64_t secret_ = 0;
  TimePoint now_{1h};
  WebLogin logins_{[this] { return "secret" + std::to_string(++secret_); }};
  AccessRules rules_;
  WebSession session_;
};

TEST_F(RouterTest, ProgramsGetProblemsOfBadAddresses) {
  for (const char* path : {"/api/v1/jobs/%03", "/api/v1/jobs?a=1&a=2", "/api/v1/jobs/%zz"}) {
    const auto routed = route(get(path), rules_, logins_, now_);
    const auto* refusal = std::get_if<HttpError>(&routed);
    ASSERT_NE(refusal, nullptr) << path;
    EXPECT_TRUE(refusal->is_api) << path;
    EXPECT_EQ(refusal->text.find("malformed"), std::string::npos) << refusal->text;
  }
}

TEST_F(RouterTest, ServesReadersOnLoopback) {
  for (const char* path : {"/", "/app.js", "/metrics", "/api/v1/snapshot", "/api/v1/stream?rate=2",
                           "/api/v1/session", "/login", "/login.js"}) {
    EXPECT_EQ(status(get(path)), 200) << path;
  }
  EXPECT_EQ(status(get("/api/v1/nothing")), 404);
  EXPECT_EQ(status(get("/api/v2/snapshot")), 404);
  EXPECT_EQ(status(get("/../etc/passwd")), 400);
}

TEST_F(RouterTest, RejectsOtherHosts) {
  Request request = get("/");
  for (const char* host : {"evil.example", "127.0.0.1", "127.0.0.1:81", "127.0.0.1:80.evil"}) {
    request.host = host;
    EXPECT_EQ(status(request), 421) << host;
  }
  request.host = "";
  EXPECT_EQ(status(request), 400);
  request.host = "LOCALHOST:80";
  EXPECT_EQ(status(request), 200);
}

TEST_F(RouterTest, RedirectToTheHeadNeedsNoLogin) {
  rules_.needs_login = true;
  EXPECT_EQ(status(get("/")), 401);
  rules_.is_elsewhere = true;
  for (const char* path : {"/", "/api/v1/snapshot", "/api/v1/stream", "/api/v1/ws", "/login"}) {
    EXPECT_EQ(status(get(path)), 200) << path;
  }
  Request stranger = post();
  stranger.cookie = "";
  EXPECT_EQ(status(stranger), 200) << "nothing is done there";
  EXPECT_EQ(status(get("/metrics")), 401);
  EXPECT_EQ(status(get("//evil.example/")), 400) << "no address to be sent to";
  Request request = get("/");
  request.host = "evil.example";
  EXPECT_EQ(status(request), 421);
}

TEST_F(RouterTest, RejectsWrongMethods) {
  for (const char* method : {"POST", "PUT", "DELETE", "TRACE", "OPTIONS", "x"}) {
    Request request = get("/");
    request.method = method;
    EXPECT_EQ(status(request), 405) << method;
  }
  Request request = get("/api/v1/admin/set");
  EXPECT_EQ(status(request), 405);
  request.method = "HEAD";
  EXPECT_EQ(status(request), 405);
}

TEST_F(RouterTest, LogsInByPostOnly) {
  EXPECT_EQ(std::get<Routed>(route(get("/login"), rules_, logins_, now_)).endpoint,
            Endpoint::LoginPage);
  EXPECT_EQ(std::get<Routed>(route(login(), rules_, logins_, now_)).endpoint, Endpoint::Login);
  EXPECT_EQ(status(get("/login?token=x")), 405);
  Request request = login();
  request.target = "/login?token=x";
  EXPECT_EQ(status(request), 405);
  for (const char* origin : {"http://evil.example", "null", "https://127.0.0.1:80"}) {
    request = login();
    request.origin = origin;
    EXPECT_EQ(status(request), 403) << origin;
  }
  EXPECT_EQ(login_token("token=abc"), "abc");
  for (const char* body : {"", "token", "tok=abc", "a=1&token=abc"}) {
    EXPECT_EQ(login_token(body), "") << body;
  }
}

TEST_F(RouterTest, MarksTheCookieOfALoginForHttps) {
  const std::string flags = "; Path=/; HttpOnly; SameSite=Strict; Max-Age=43200";
  EXPECT_EQ(login_cookie("x", "127.0.0.1:80", rules_), "scored=x" + flags);
  rules_.public_host = "cluster.example.org";
  EXPECT_EQ(login_cookie("x", "127.0.0.1:80", rules_), "scored=x" + flags);
  EXPECT_EQ(login_cookie("x", "Cluster.example.org", rules_), "scored=x" + flags + "; Secure");
  rules_.scheme = "https";
  EXPECT_EQ(login_cookie("x", "127.0.0.1:80", rules_), "scored=x" + flags + "; Secure");
}

TEST_F(RouterTest, PostNeedsOriginCookieAndSecret) {
  EXPECT_EQ(status(post()), 200);
  Request request = post();
  request.origin = "http://evil.example";
  EXPECT_EQ(status(request), 403);
  request = post();
  request.origin = "ftp://127.0.0.1:80";
  EXPECT_EQ(status(request), 403);
  request = post();
  request.cookie = "scored=guess";
  EXPECT_EQ(status(request), 401);
  request = post();
  request.csrf = "";
  EXPECT_EQ(status(request), 403);
  request = post();
  request.content_type = "text/plain";
  EXPECT_EQ(status(request), 415);
}

TEST_F(RouterTest, OpensSocketsForOwnPagesAndTools) {
  Request request = get("/api/v1/ws");
  EXPECT_EQ(status(request), 426);
  request.is_upgrade = true;
  EXPECT_EQ(status(request), 200);
  request.origin = "http://localhost:80";
  EXPECT_EQ(status(request), 200);
  for (const char* origin : {"http://evil.example", "null", "http://127.0.0.1", "?",
                             "https://127.0.0.1:80", "https://localhost:80"}) {
    request.origin = origin;
    EXPECT_EQ(status(request), 403) << origin;
  }
}

TEST_F(RouterTest, AcceptsThePublicOriginBehindAProxy) {
  rules_.hosts.push_back("cluster.example.org");
  rules_.origins.push_back("https://cluster.example.org");
  Request request = post();
  request.host = "cluster.example.org";
  request.origin = "https://Cluster.example.org";
  EXPECT_EQ(status(request), 200);
  for (const char* origin : {"http://cluster.example.org", "https://cluster.example.org:8443",
                             "https://cluster.example.org.evil.example"}) {
    request.origin = origin;
    EXPECT_EQ(status(request), 403) << origin;
  }
}

TEST_F(RouterTest, TrustsTheUserNamedByTheProxy) {
  Request request = post();
  request.cookie = "";
  EXPECT_EQ(status(request), 401);
  request.remote = WebUser{UserId(7), "mallory"};
  EXPECT_EQ(status(request), 403);  // without the page's secret
  request.csrf = logins_.vouched(*request.remote, now_).csrf;
  EXPECT_EQ(status(request), 200);
  request.remote = WebUser{UserId(8), "trent"};
  EXPECT_EQ(status(request), 403);  // with the secret of a different user
}

TEST_F(RouterTest, NeedsLoginOffLoopback) {
  rules_.needs_login = true;
  rules_.token = "0123456789abcdef";
  for (const char* path : {"/", "/metrics", "/api/v1/snapshot", "/api/v1/stream"}) {
    Request request = get(path);
    EXPECT_EQ(status(request), 401) << path;
    request.authorization = "Bearer 0123456789abcdeX";
    EXPECT_EQ(status(request), 401) << path;
    request.authorization = "Bearer 0123456789abcdef";
    EXPECT_EQ(status(request), 200) << path;
    request = get(path);
    request.cookie = "scored=" + session_.cookie;
    EXPECT_EQ(status(request), 200) << path;
  }
  EXPECT_EQ(status(get("/login")), 200);
  EXPECT_EQ(status(login()), 200);
  Request request = post();
  request.cookie = "";
  request.authorization = "Bearer 0123456789abcdef";
  EXPECT_EQ(status(request), 401);
}

TEST_F(RouterTest, SurvivesRandomRequests) {
  std::mt19937 random(3);
  const auto noise = [&random] {
    std::string text(random() % 30, ' ');
    for (char& c : text) c = static_cast<char>(random() % 256);
    return text;
  };
  for (int i = 0; i < 20'000; ++i) {
    Request request = i % 2 == 0 ? get("/" + noise()) : post();
    if (i % 3 == 0) request.cookie = noise();
    if (i % 5 == 0) request.origin = noise();
    if (i % 7 == 0) request.target = noise();
    (void)status(request);
  }
}

TEST(Action, HasANameAndAnObjectForLogs) {
  const auto cancel = parse_action("cancel", R"({"job": 7})");
  ASSERT_TRUE(cancel);
  EXPECT_EQ(name_of(cancel->kind), "cancel");
  EXPECT_EQ(object_of(*cancel), "job 7");
  const auto drain = parse_action("drain", R"({"nodes": "n[0-1]\u001b"})");
  ASSERT_TRUE(drain);
  EXPECT_EQ(name_of(drain->kind), "drain");
  EXPECT_EQ(object_of(*drain).find('\x1b'), std::string::npos);
  EXPECT_EQ(object_of(*parse_action("set", R"({"name": "slots", "value": "4"})")), "slots");
}

TEST(WebLogin, TokenWorksOnceAndExpires) {
  std::uint64_t secret = 0;
  WebLogin logins([&secret] { return "s" + std::to_string(++secret); });
  const TimePoint now{1h};
  const auto token = logins.offer({UserId(5), "eve"}, now);
  const auto late = logins.offer({UserId(6), "bob"}, now);
  const auto session = logins.redeem(*token, now);
  ASSERT_TRUE(session);
  EXPECT_FALSE(logins.redeem(*token, now));
  EXPECT_FALSE(logins.redeem(*late, now + WebLogin::kTokenLife));
  EXPECT_FALSE(logins.redeem("", now));
  EXPECT_EQ(logins.find(session->cookie, now)->who.name, "eve");
  EXPECT_FALSE(logins.find(session->cookie, now + WebLogin::kSessionLife));
  EXPECT_FALSE(logins.find("", now));
  logins.end(session->cookie);
  EXPECT_FALSE(logins.find(session->cookie, now));
}

TEST(WebLogin, LimitsTokensAndSessions) {
  std::uint64_t secret = 0;
  WebLogin logins([&secret] { return "s" + std::to_string(++secret); });
  const TimePoint now{1h};
  for (std::uint32_t i = 0; i < WebLogin::kMaxTokens; ++i) {
    ASSERT_TRUE(logins.offer({UserId(1 + i / 4), "a"}, now));
  }
  EXPECT_FALSE(logins.offer({UserId(1), "a"}, now));
  EXPECT_TRUE(logins.offer({UserId(1), "a"}, now + WebLogin::kTokenLife));
}

TEST(WebLogin, OneUserCannotTakeAllPlaces) {
  std::uint64_t secret = 0;
  WebLogin logins([&secret] { return "s" + std::to_string(++secret); });
  const WebUser greedy{UserId(1), "greedy"}, bob{UserId(2), "bob"};
  TimePoint now{1h};
  const auto of_bob = logins.redeem(*logins.offer(bob, now), now);
  const auto first = logins.redeem(*logins.offer(greedy, now), now);
  const auto waiting = logins.offer(bob, now);
  const auto unused = logins.offer(greedy, now);
  for (std::size_t i = 0; i < 2 * WebLogin::kMaxSessions; ++i) {
    now += 1ms;
    const auto token = logins.offer(greedy, now);
    ASSERT_TRUE(token) << i;
    const bool is_used = i % 2 == 0;
    ASSERT_TRUE(!is_used || logins.redeem(*token, now)) << i;
  }
  EXPECT_TRUE(logins.find(of_bob->cookie, now));
  EXPECT_TRUE(logins.redeem(*waiting, now));
  EXPECT_FALSE(logins.find(first->cookie, now)) << "his own oldest made room";
  EXPECT_FALSE(logins.redeem(*unused, now));
}

// ---- viewers ------------------------------------------------------------------------------------

struct Viewer {
  Deliver take() {
    return [this](Frame frame) {
      frames.push_back(std::move(frame));
      return is_quick;
    };
  }

  std::vector<Frame> frames;
  bool is_quick = true;
};

Hub::Encode counting(int& encoded) {
  return [&encoded](const ViewerOptions&, const Sight&, std::uint64_t sequence) {
    ++encoded;
    return std::make_shared<const std::string>(std::to_string(sequence));
  };
}

ViewerOptions every(std::uint32_t ticks) {
  ViewerOptions options;
  options.ticks = ticks;
  return options;
}

TEST(Hub, EncodesOnceForAHundred) {
  Hub hub;
  std::vector<Viewer> viewers(100);
  for (Viewer& viewer : viewers) ASSERT_TRUE(hub.add("user 1", every(1), {}, viewer.take()));
  int encoded = 0;
  for (std::uint64_t tick = 1; tick <= 10; ++tick) hub.tick(tick, counting(encoded));
  EXPECT_EQ(encoded, 10);
  EXPECT_EQ(viewers[0].frames.size(), 10U);
  EXPECT_EQ(viewers[0].frames[3], viewers[99].frames[3]);
}

TEST(Hub, GroupsByRateFilterAndRights) {
  Hub hub;
  Viewer fast, slow, other;
  ASSERT_TRUE(hub.add("user 1", every(1), {}, fast.take()));
  ASSERT_TRUE(hub.add("user 1", every(5), {}, slow.take()));
  ASSERT_TRUE(hub.add("user 1", every(5), Sight{UserId(3), true}, other.take()));
  EXPECT_EQ(hub.shortest_ticks(), 1U);
  int encoded = 0;
  for (std::uint64_t tick = 1; tick <= 10; ++tick) hub.tick(tick, counting(encoded));
  EXPECT_EQ(fast.frames.size(), 10U);
  EXPECT_EQ(slow.frames.size(), 2U);
  EXPECT_EQ(encoded, 14);
}

TEST(Hub, SlowViewerSeesAGapInSequence) {
  Hub hub;
  Viewer slow;
  slow.is_quick = false;
  ASSERT_TRUE(hub.add("user 1", every(1), {}, slow.take()));
  int encoded = 0;
  for (std::uint64_t tick = 1; tick <= 3; ++tick) hub.tick(tick, counting(encoded));
  EXPECT_EQ(hub.counters().skipped, 3U);
}

TEST(Hub, PausedViewersGetNoDocuments) {
  Hub hub;
  Viewer viewer;
  const auto id = hub.add("user 1", every(1), {}, viewer.take());
  hub.pause(*id, true);
  int encoded = 0;
  hub.tick(1, counting(encoded));
  EXPECT_EQ(encoded, 0);
  EXPECT_EQ(hub.shortest_ticks(), 0U);
  hub.pause(*id, false);
  ASSERT_TRUE(hub.change(*id, every(2)));
  hub.tick(2, counting(encoded));
  EXPECT_EQ(encoded, 1);
  hub.remove(*id);
  hub.remove(*id);
  EXPECT_EQ(hub.viewer_count(), 0U);
}

TEST(Hub, ReportsPartsThatViewersRequest) {
  Hub hub;
  Viewer usual, curious;
  ASSERT_TRUE(hub.add("user 1", every(1), {}, usual.take()));
  EXPECT_FALSE(hub.wants(Part::Peers));
  ViewerOptions options = every(10);
  options.filter.parts = *parse_parts("peers");
  const auto id = hub.add("user 1", options, {}, curious.take());
  EXPECT_TRUE(hub.wants(Part::Peers));
  hub.pause(*id, true);
  EXPECT_FALSE(hub.wants(Part::Peers));
  hub.pause(*id, false);
  hub.remove(*id);
  EXPECT_FALSE(hub.wants(Part::Peers));
}

TEST(Hub, LimitsViewersAndGroups) {
  Hub hub;
  Viewer viewer;
  for (std::uint32_t i = 0; i < Hub::kMaxGroups; ++i) {
    ASSERT_TRUE(hub.add(std::to_string(i), every(i + 1), {}, viewer.take()));
  }
  EXPECT_FALSE(hub.add("other", every(99), {}, viewer.take()));
  for (std::size_t i = Hub::kMaxGroups; i < Hub::kMaxViewers; ++i) {
    ASSERT_TRUE(hub.add(std::to_string(i), every(1), {}, viewer.take()));
  }
  EXPECT_FALSE(hub.add("other", every(1), {}, viewer.take()));
}

TEST(Hub, OneOwnerShutsNobodyOut) {
  Hub hub;
  Viewer viewer;
  for (std::uint32_t i = 1; i <= Hub::kMaxGroupsOfOwner; ++i) {
    ASSERT_TRUE(hub.add("user 1", every(i), {}, viewer.take()));
  }
  const auto refused = hub.add("user 1", every(99), {}, viewer.take());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().context(), "too many different filters of user 1: at most 8");
  std::optional<ViewerId> last;
  for (std::size_t i = Hub::kMaxGroupsOfOwner; i < Hub::kMaxViewersOfOwner; ++i) {
    const auto added = hub.add("user 1", every(1), {}, viewer.take());
    ASSERT_TRUE(added);
    last = *added;
  }
  EXPECT_FALSE(hub.add("user 1", every(1), {}, viewer.take()));
  EXPECT_FALSE(hub.change(*last, every(99)));
  EXPECT_TRUE(hub.add("user 2", every(99), {}, viewer.take()));
  hub.remove(*last);
  EXPECT_TRUE(hub.add("user 1", every(1), {}, viewer.take()));
}

TEST(Hub, ChangesTheOnlyViewerOfAFullTable) {
  Hub hub;
  Viewer viewer;
  std::optional<ViewerId> last;
  for (std::uint32_t i = 0; i < Hub::kMaxGroups; ++i) {
    const auto added = hub.add(std::to_string(i), every(i + 1), {}, viewer.take());
    ASSERT_TRUE(added);
    last = *added;
  }
  EXPECT_TRUE(hub.change(*last, every(99)));
}

// ---- settings -----------------------------------------------------------------------------------

Status settings_error(const std::string& text) {
  auto file = ConfigFile::parse("[monitor]\n" + text, "test.toml");
  if (!file) return file.error();
  MonitorSettings settings;
  ConfigSection section = file->root().section("monitor");
  read_settings(section, settings);
  return file->finish();
}

TEST(MonitorSettings, RemoteAccessNeedsTlsAndToken) {
  EXPECT_TRUE(settings_error("listen = \"127.0.0.1:0\""));
  EXPECT_TRUE(settings_error("listen = \"[::1]:8080\"\nnode_listen = \"none\""));
  const auto open = settings_error("listen = \"0.0.0.0:8080\"");
  ASSERT_FALSE(open);
  EXPECT_EQ(open.error().context(),
            "test.toml:2: listen: not a loopback address: that needs tls_certificate, tls_key and "
            "token_file");
  EXPECT_FALSE(settings_error("listen = \"10.0.0.1:80\"\ntoken_file = \"/t\""));
  EXPECT_FALSE(settings_error("node_listen = \"[::]:80\""));
  EXPECT_TRUE(
      settings_error("listen = \"10.0.0.1:80\"\ntoken_file = \"/t\"\n"
                     "tls_certificate = \"/c\"\ntls_key = \"/k\""));
  EXPECT_FALSE(settings_error("tls_certificate = \"/c\""));
  EXPECT_FALSE(settings_error("listen = \"localhost:80\""));
  EXPECT_FALSE(settings_error("listen = \"127.0.0.1\""));
}

}  // namespace
}  // namespace score::monitor
