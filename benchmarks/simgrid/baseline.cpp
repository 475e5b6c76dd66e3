// SPDX-License-Identifier: MIT
//
// Baseline: bandwidth sharing written with SimGrid 3.32 (S4U).
//
//     baseline INSTANCE POLICY [--cfg=...]
//
// Every application is an actor; the storage is a one-core host of speed B, and
// an I/O operation of volume V is an execution of V flops on it, so that SimGrid's
// own max-min solver shares the bandwidth. Work phases are sleeps. No network is
// simulated: this is the leanest model that SimGrid has for a shared resource.
//
// Only instances in which every application can saturate the storage (b_i = B)
// are read. So a serving policy serves one operation at a time:
//
//     fair-share                all executions run; the solver does the rest
//     fcfs                      a mutex, which SimGrid grants in order of request
//     greedy-yield, greedy-com  actors are suspended and resumed, and with them
//                               their executions. (In 3.32 an execution that was
//                               resumed once cannot be suspended again.)
//
// A decision is a function of the state alone and takes no simulated time: when
// several things happen at one instant, the last decision of the instant, which
// sees them all, is the one that holds. Deviation: operations posted at exactly
// the same time under fcfs, or completed while another one is posted, follow
// SimGrid's order of actors; instances drawn from continuous laws have none.
//
// INSTANCE is a file of doubles: applications, end of the window, B; then for each
// application release, start, time lost before the start, number of operations n,
// n + 1 work phases, n volumes. Instants count from 0, the earliest start.
// Prints {"yields": [...], "events": posts + completions before the end of the
// window, "seconds": time spent inside the engine}.

#include <simgrid/s4u.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace sg4 = simgrid::s4u;

namespace {

struct Application {
  double release, start;
  double lost; // time lost, as of `since` (s)
  std::vector<double> work, volume;
  double since     = 0.0; // post, or last change between waiting and served
  double remaining = 0.0; // volume still to transfer, as of `since`
  sg4::ActorPtr actor   = nullptr;
  sg4::ExecPtr transfer = nullptr; // operation under way (fair-share)
};

enum class Policy { fair_share, fcfs, greedy_yield, greedy_com };

std::vector<Application> applications;
double window_end = 0.0;
double bandwidth  = 0.0;
Policy policy     = Policy::fair_share;
long events       = 0;

[[noreturn]] void fail(const std::string& what)
{
  std::fprintf(stderr, "baseline: %s\n", what.c_str());
  std::exit(2);
}

void count_event()
{
  if (sg4::Engine::get_clock() < window_end)
    ++events;
}

// --- Fair share: what SimGrid does by itself ------------------------------------

void transfer_shared(Application& self, double volume)
{
  self.since    = sg4::Engine::get_clock();
  self.transfer = sg4::this_actor::exec_init(volume);
  self.transfer->wait();
  self.transfer = nullptr;
  const double elapsed = sg4::Engine::get_clock() - self.since;
  self.lost += std::max(elapsed - volume / bandwidth, 0.0);
}

// --- FCFS: a mutex is a first-come-first-served queue ---------------------------

sg4::MutexPtr storage_mutex;
std::vector<Application*> active; // applications with an operation, by index
Application* served = nullptr;    // the one that transfers

void enter(Application& self, double volume)
{
  self.since     = sg4::Engine::get_clock();
  self.remaining = volume;
  active.insert(std::lower_bound(active.begin(), active.end(), &self), &self);
}

void leave(Application& self)
{
  active.erase(std::lower_bound(active.begin(), active.end(), &self));
  served = nullptr;
}

double lost_at(const Application& application, double now)
{
  const double waited = &application == served ? 0.0 : now - application.since;
  return application.lost + waited;
}

void transfer_in_order(Application& self, double volume)
{
  enter(self, volume);
  storage_mutex->lock();
  self.lost = lost_at(self, sg4::Engine::get_clock());
  served    = &self;
  sg4::this_actor::execute(volume);
  leave(self);
  storage_mutex->unlock();
}

// --- Greedy: the operation to serve is chosen at every event --------------------

bool deciding = false;
bool again    = false;

// The operation with the lowest key is served; ties go to the lowest index.
double key(const Application& application, double now)
{
  if (policy == Policy::greedy_com) {
    const double elapsed = &application == served ? now - application.since : 0.0;
    return application.remaining - elapsed * bandwidth;
  }
  // NOTE: yield - 1, so that applications never delayed tie exactly, at 0.
  const double age = now - application.release;
  return age > 0.0 ? -lost_at(application, now) / age : -1.0;
}

Application* choose(double now)
{
  Application* best = nullptr;
  double lowest     = 0.0;
  for (Application* candidate : active) {
    const double value = key(*candidate, now);
    if (best == nullptr || value < lowest) {
      best   = candidate;
      lowest = value;
    }
  }
  return best;
}

void serve(Application* best, double now)
{
  Application* before = served;
  if (before != nullptr) {
    before->remaining -= (now - before->since) * bandwidth;
    before->since = now;
  }
  if (best != nullptr) {
    best->lost  = lost_at(*best, now);
    best->since = now;
  }
  served = best;
  if (before != nullptr)
    before->actor->suspend();
  if (best != nullptr && best->actor.get() != sg4::Actor::self())
    best->actor->resume();
}

// Other actors may run, and call this, while one suspends and resumes: they leave
// it to that one to look again.
void decide()
{
  again = true;
  if (deciding)
    return;
  deciding = true;
  while (again) {
    again            = false;
    const double now = sg4::Engine::get_clock();
    if (Application* best = choose(now); best != served)
      serve(best, now);
  }
  deciding = false;
}

void transfer_chosen(Application& self, double volume)
{
  enter(self, volume);
  decide();
  while (served != &self)
    sg4::this_actor::suspend();
  sg4::this_actor::execute(volume);
  leave(self);
  decide();
}

// --- Applications ---------------------------------------------------------------

void transfer(Application& self, double volume)
{
  switch (policy) {
    case Policy::fair_share:
      return transfer_shared(self, volume);
    case Policy::fcfs:
      return transfer_in_order(self, volume);
    default:
      return transfer_chosen(self, volume);
  }
}

void run(Application& self)
{
  if (self.start > 0.0)
    sg4::this_actor::sleep_for(self.start);
  for (std::size_t n = 0; n < self.volume.size(); ++n) {
    if (self.work[n] > 0.0)
      sg4::this_actor::sleep_for(self.work[n]);
    count_event();
    if (self.volume[n] > 0.0)
      transfer(self, self.volume[n]);
    count_event();
  }
  sg4::this_actor::sleep_for(self.work.back());
}

// Time lost at the end of the window; operations under way count pro rata (s).
double lost_in_window(const Application& application)
{
  if (policy == Policy::fair_share) {
    if (application.transfer == nullptr)
      return application.lost;
    const auto& exec   = *application.transfer;
    const double moved = exec.get_cost() - exec.get_remaining();
    return application.lost + (window_end - application.since) - moved / bandwidth;
  }
  const bool waits = std::binary_search(active.begin(), active.end(), &application);
  return waits ? lost_at(application, window_end) : application.lost;
}

void read(const char* name)
{
  std::ifstream file(name, std::ios::binary | std::ios::ate);
  if (!file)
    fail(std::string("cannot read ") + name);
  const auto bytes = static_cast<std::streamsize>(file.tellg());
  std::vector<double> data(static_cast<std::size_t>(bytes) / sizeof(double));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(data.data()), bytes);
  auto next = data.cbegin();
  applications.resize(static_cast<std::size_t>(*next++));
  window_end = *next++;
  bandwidth  = *next++;
  for (auto& application : applications) {
    application.release = *next++;
    application.start   = *next++;
    application.lost    = *next++;
    const auto count    = static_cast<std::ptrdiff_t>(*next++);
    application.work.assign(next, next + count + 1);
    next += count + 1;
    application.volume.assign(next, next + count);
    next += count;
  }
}

Policy policy_of(const std::string& name)
{
  if (name == "fair-share")
    return Policy::fair_share;
  if (name == "fcfs")
    return Policy::fcfs;
  if (name == "greedy-yield")
    return Policy::greedy_yield;
  if (name == "greedy-com")
    return Policy::greedy_com;
  fail("unknown policy " + name);
}

} // namespace

int main(int argc, char** argv)
{
  sg4::Engine engine(&argc, argv);
  if (argc != 3)
    fail("usage: baseline INSTANCE POLICY");
  read(argv[1]);
  policy = policy_of(argv[2]);

  auto* zone    = sg4::create_full_zone("platform");
  auto* storage = zone->create_host("storage", bandwidth);
  zone->seal();
  storage_mutex = sg4::Mutex::create();
  for (auto& application : applications)
    application.actor = sg4::Actor::create("application", storage,
                                           [&application] { run(application); });

  using Clock      = std::chrono::steady_clock;
  const auto begin = Clock::now();
  engine.run_until(window_end);
  const std::chrono::duration<double> elapsed = Clock::now() - begin;

  const char* separator = "";
  std::printf("{\"yields\": [");
  for (const auto& application : applications) {
    const double age = window_end - application.release;
    std::printf("%s%.17g", separator, 1.0 - lost_in_window(application) / age);
    separator = ", ";
  }
  std::printf("], \"events\": %ld, \"seconds\": %.9f}\n", events, elapsed.count());
  // The actors are still under way: leave without waiting for them.
  std::fflush(stdout);
  std::_Exit(0);
}
