// A CUDA runtime and driver without a card: enough for PyTorch's caching allocator, and nothing else.
//
// A release of torch that was built for CUDA loads this in place of libcudart and libcuda and runs its own allocator on
// it. Memory is only numbers: no address is backed by anything, no kernel ever runs. The program that drives torch sets
// the size of the card, where the driver places what it hands out, and when the events of other streams complete
// (oracle_* at the end). Every call that an allocator makes of the driver is written down, in order.
//
// Declarations are written here, for the part of the interface that torch calls. Built by build.py.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace {

// Error numbers of the runtime (and of the driver, where they agree).
constexpr int kSuccess = 0;
constexpr int kInvalidValue = 1;
constexpr int kOutOfMemory = 2;
constexpr int kNotReady = 600;
constexpr int kNotSupported = 801;

constexpr uint64_t kPage = uint64_t{2} << 20;
constexpr uint64_t kSpaceBegin = 0x700000000000;
constexpr uint64_t kSpaceOfCard = uint64_t{1} << 42;  // each card has its own part of the address space
constexpr int kMostDevices = 4;

constexpr uint64_t round_up(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

// Where the next range goes. `fed`: at the addresses that the driving program gave, in order.
enum class Placement { lowest, highest, rising, random, fed };

enum class CallKind : uint32_t { allocate = 1, refuse, release, map, unmap, refuse_map, reserve };

struct Call {
  uint32_t kind;
  uint32_t device;
  uint64_t address;
  uint64_t size;
};

struct Event {
  bool pending = false;
  uint64_t stream = 0;
};

class Card {
 public:
  explicit Card(uint32_t device)
      : device_(device), space_begin_(kSpaceBegin + device * kSpaceOfCard), next_(space_begin_) {}

  uint64_t allocate(uint64_t size) {
    const std::lock_guard<std::mutex> guard(lock_);
    size = round_up(size, kPage);
    if (used_ + size > capacity_ - occupied_) {
      note(CallKind::refuse, 0, size);
      return 0;
    }
    const uint64_t address = place(size);
    used_ += size;
    segments_[address] = size;
    note(CallKind::allocate, address, size);
    return address;
  }

  bool release(uint64_t address) {
    const std::lock_guard<std::mutex> guard(lock_);
    const auto found = segments_.find(address);
    if (found == segments_.end() || keeps_) return false;
    note(CallKind::release, address, found->second);
    used_ -= found->second;
    ranges_.erase(address);
    segments_.erase(found);
    return true;
  }

  uint64_t reserve(uint64_t size) {
    const std::lock_guard<std::mutex> guard(lock_);
    size = round_up(size, kPage);
    const uint64_t address = place(size);
    note(CallKind::reserve, address, size);
    return address;
  }
  void release_range(uint64_t address) {
    const std::lock_guard<std::mutex> guard(lock_);
    ranges_.erase(address);
  }

  // Physical memory: counted when it is made, as the driver does.
  uint64_t create(uint64_t size) {
    const std::lock_guard<std::mutex> guard(lock_);
    if (used_ + size > capacity_ - occupied_) {
      note(CallKind::refuse_map, 0, size);
      return 0;
    }
    used_ += size;
    handles_[last_handle_ += kMostDevices] = size;
    return last_handle_;
  }
  void destroy(uint64_t handle) {
    const std::lock_guard<std::mutex> guard(lock_);
    const auto found = handles_.find(handle);
    if (found == handles_.end()) return;
    used_ -= found->second;
    handles_.erase(found);
  }
  void map(uint64_t address, uint64_t size) {
    const std::lock_guard<std::mutex> guard(lock_);
    note(CallKind::map, address, size);
  }
  void unmap(uint64_t address, uint64_t size) {
    const std::lock_guard<std::mutex> guard(lock_);
    note(CallKind::unmap, address, size);
  }

  [[nodiscard]] uint64_t capacity() const { return capacity_; }
  [[nodiscard]] uint64_t free_bytes() const { return capacity_ - occupied_ - used_; }

  void set_capacity(uint64_t bytes) { capacity_ = bytes; }
  // What other processes hold.
  void set_occupied(uint64_t bytes) { occupied_ = bytes; }
  // From now on segments cannot be given back: an error.
  void keep_segments(bool keeps) { keeps_ = keeps; }
  void set_placement(Placement placement, uint64_t seed) {
    placement_ = placement;
    random_.seed(seed);
  }
  void feed(const uint64_t* addresses, size_t count) { fed_.insert(fed_.end(), addresses, addresses + count); }
  [[nodiscard]] const std::vector<Call>& calls() const { return calls_; }

 private:
  [[nodiscard]] bool is_free(uint64_t address, uint64_t size) const {
    auto above = ranges_.lower_bound(address);
    if (above != ranges_.end() && above->first < address + size) return false;
    if (above == ranges_.begin()) return true;
    const auto& [begin, length] = *std::prev(above);
    return begin + length <= address;
  }

  uint64_t lowest(uint64_t size) const {
    uint64_t at = space_begin_;
    for (const auto& [begin, length] : ranges_) {
      if (begin >= at + size) break;
      at = std::max(at, begin + length);
    }
    return at;
  }
  uint64_t highest(uint64_t size) const {
    uint64_t end = space_begin_ + kSpaceOfCard;
    for (auto range = ranges_.rbegin(); range != ranges_.rend(); ++range) {
      if (range->first + range->second + size <= end) break;
      end = std::min(end, range->first);
    }
    return end - size;
  }
  uint64_t anywhere(uint64_t size) {
    constexpr uint64_t kWindow = uint64_t{1} << 38;  // near each other, so that segments touch now and then
    constexpr int kTries = 100;
    for (int i = 0; i < kTries; ++i) {
      const uint64_t at = space_begin_ + random_() % (kWindow / kPage) * kPage;
      if (is_free(at, size)) return at;
    }
    return lowest(size);
  }

  uint64_t place(uint64_t size) {
    uint64_t at = 0;
    if (placement_ == Placement::fed && !fed_.empty()) {
      at = fed_.front();
      fed_.pop_front();
    } else if (placement_ == Placement::highest) {
      at = highest(size);
    } else if (placement_ == Placement::random) {
      at = anywhere(size);
    } else if (placement_ == Placement::rising) {
      const bool fits = next_ + size <= space_begin_ + kSpaceOfCard;
      at = fits ? next_ : lowest(size);
      next_ = std::max(next_, at + size);
    } else {
      at = lowest(size);
    }
    ranges_[at] = size;
    return at;
  }

  void note(CallKind kind, uint64_t address, uint64_t size) {
    calls_.push_back({static_cast<uint32_t>(kind), device_, address, size});
  }

  std::mutex lock_;
  uint32_t device_;
  uint64_t space_begin_;
  uint64_t capacity_ = uint64_t{80} << 30;
  uint64_t occupied_ = 0;
  uint64_t used_ = 0;
  bool keeps_ = false;
  Placement placement_ = Placement::lowest;
  std::mt19937_64 random_{1};
  std::deque<uint64_t> fed_;
  uint64_t next_;
  uint64_t last_handle_ = device_;         // handles say whose they are
  std::map<uint64_t, uint64_t> ranges_;    // address space: segments and reserved ranges
  std::map<uint64_t, uint64_t> segments_;  // cudaMalloc
  std::map<uint64_t, uint64_t> handles_;   // cuMemCreate
  std::vector<Call> calls_;
};

class Events {
 public:
  Event* create() { return new Event; }
  void destroy(Event* event) {
    const std::lock_guard<std::mutex> guard(lock_);
    order_.erase(std::remove(order_.begin(), order_.end(), event), order_.end());
    delete event;
  }
  void record(Event* event, uint64_t stream) {
    const std::lock_guard<std::mutex> guard(lock_);
    order_.erase(std::remove(order_.begin(), order_.end(), event), order_.end());
    event->pending = held_;
    event->stream = stream;
    if (held_) order_.push_back(event);
  }
  bool is_pending(Event* event) {
    const std::lock_guard<std::mutex> guard(lock_);
    return event->pending;
  }
  void wait_for(Event* event) {
    const std::lock_guard<std::mutex> guard(lock_);
    event->pending = false;
    order_.erase(std::remove(order_.begin(), order_.end(), event), order_.end());
  }
  void complete(size_t count) {
    const std::lock_guard<std::mutex> guard(lock_);
    for (; count > 0 && !order_.empty(); --count) {
      order_.front()->pending = false;
      order_.pop_front();
    }
  }
  void complete_of_stream(uint64_t stream, size_t count) {
    const std::lock_guard<std::mutex> guard(lock_);
    for (Event* event : order_) {
      if (event->stream != stream || count == 0) continue;
      event->pending = false;
      --count;
    }
    order_.erase(std::remove_if(order_.begin(), order_.end(), [](const Event* event) { return !event->pending; }),
                 order_.end());
  }
  void hold(bool held) { held_ = held; }

 private:
  std::mutex lock_;
  bool held_ = false;
  std::deque<Event*> order_;  // recorded and not yet complete, oldest first
};

Card cards[kMostDevices] = {Card(0), Card(1), Card(2), Card(3)};
Events events;
int devices = 1;
thread_local int last_error = kSuccess;
thread_local int current_device = 0;
uint64_t last_stream = 0x5000;
std::mutex capture_lock;
std::map<uint64_t, uint64_t> capturing;  // stream -> id of the capture

Card& current_card() { return cards[current_device]; }

bool release_anywhere(uint64_t address) {
  for (Card& card : cards) {
    if (card.release(address)) return true;
  }
  return false;
}

// Mapping names no device: a page lies where its range was reserved.
Card& card_of(uint64_t address) {
  const uint64_t index = address < kSpaceBegin ? 0 : (address - kSpaceBegin) / kSpaceOfCard;
  return devices > 1 && index < kMostDevices ? cards[index] : cards[0];
}

int fail(int error) {
  last_error = error;
  return error;
}

bool is_traced() {
  static const bool traced = std::getenv("ORACLE_TRACE") != nullptr;
  return traced;
}

int not_supported() { return kNotSupported; }

uint64_t capture_of(uint64_t stream) {
  const std::lock_guard<std::mutex> guard(capture_lock);
  const auto found = capturing.find(stream);
  return found == capturing.end() ? 0 : found->second;
}

}  // namespace

extern "C" {

// --- the runtime: devices ------------------------------------------------------------------------------------------

int cudaGetDeviceCount(int* count) {
  *count = devices;
  return kSuccess;
}
int cudaGetDevice(int* device) {
  *device = current_device;
  return kSuccess;
}
int cudaSetDevice(int device) {
  current_device = device;
  return kSuccess;
}
int cudaDriverGetVersion(int* version) {
  *version = ORACLE_CUDA_VERSION;
  return kSuccess;
}
int cudaRuntimeGetVersion(int* version) {
  *version = ORACLE_CUDA_VERSION;
  return kSuccess;
}

// cudaDeviceProp of CUDA 11 to 13: the fields that decide anything here, at their offsets (the runtime's public
// structure). The rest is zero.
int cudaGetDeviceProperties(void* out, int device) {
  constexpr size_t kPropertyBytes = 728;  // the smallest of the structures of those releases
  char* properties = static_cast<char*>(out);
  std::memset(properties, 0, kPropertyBytes);
  std::strcpy(properties, "Oracle");
  const auto put = [properties](size_t offset, auto value) { std::memcpy(properties + offset, &value, sizeof value); };
  put(288, cards[device].capacity());  // totalGlobalMem
  put(296, size_t{49152});             // sharedMemPerBlock
  put(304, 65536);                     // regsPerBlock
  put(308, 32);                        // warpSize
  put(320, 1024);                      // maxThreadsPerBlock
  put(360, 9);                         // major
  put(364, 0);                         // minor
  put(388, 132);                       // multiProcessorCount
  return kSuccess;
}
int cudaGetDeviceProperties_v2(void* out, int device) { return cudaGetDeviceProperties(out, device); }

int cudaDeviceGetAttribute(int* value, int attribute, int) {
  constexpr int kMajor = 75;
  *value = attribute == kMajor ? 9 : 0;
  return kSuccess;
}
int cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return kSuccess;
}
int cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return kSuccess;
}
int cudaDeviceSynchronize() {
  events.complete(SIZE_MAX);
  return kSuccess;
}
int cudaDeviceGetPCIBusId(char* text, int length, int device) {
  std::snprintf(text, static_cast<size_t>(length), "0000:%02x:00.0", device + 1);
  return kSuccess;
}

int cudaGetLastError() {
  const int error = last_error;
  last_error = kSuccess;
  return error;
}
int cudaPeekAtLastError() { return last_error; }
const char* cudaGetErrorString(int error) { return error == kOutOfMemory ? "out of memory" : "an error of the oracle"; }
const char* cudaGetErrorName(int error) {
  return error == kOutOfMemory ? "cudaErrorMemoryAllocation" : "cudaErrorUnknown";
}

// --- the runtime: memory -------------------------------------------------------------------------------------------

int cudaMalloc(void** out, size_t size) {
  const uint64_t address = current_card().allocate(size);
  if (address == 0) return fail(kOutOfMemory);
  *out = reinterpret_cast<void*>(address);
  return kSuccess;
}
int cudaFree(void* address) {
  if (address == nullptr) return kSuccess;
  return release_anywhere(reinterpret_cast<uint64_t>(address)) ? kSuccess : fail(kInvalidValue);
}
int cudaMemGetInfo(size_t* free_bytes, size_t* total) {
  *free_bytes = current_card().free_bytes();
  *total = current_card().capacity();
  return kSuccess;
}
int cudaPointerGetAttributes(void* out, const void* address) {
  struct Attributes {
    int type, device;
    const void *device_pointer, *host_pointer;
  } attributes{2, 0, address, nullptr};
  std::memcpy(out, &attributes, sizeof attributes);
  return kSuccess;
}
int cudaHostAlloc(void** out, size_t size, unsigned) {
  *out = std::malloc(size);
  return *out == nullptr ? fail(kOutOfMemory) : kSuccess;
}
int cudaFreeHost(void* address) {
  std::free(address);
  return kSuccess;
}
int cudaMemsetAsync(void*, int, size_t, uint64_t) { return kSuccess; }
int cudaMemset(void*, int, size_t) { return kSuccess; }
int cudaMemcpyAsync(void*, const void*, size_t, int, uint64_t) { return kSuccess; }
int cudaMemcpy(void*, const void*, size_t, int) { return kSuccess; }

// --- the runtime: streams and events -------------------------------------------------------------------------------

int cudaStreamCreateWithPriority(uint64_t* stream, unsigned, int) {
  *stream = last_stream += 0x10;
  return kSuccess;
}
int cudaStreamCreate(uint64_t* stream) { return cudaStreamCreateWithPriority(stream, 0, 0); }
int cudaStreamCreateWithFlags(uint64_t* stream, unsigned) { return cudaStreamCreateWithPriority(stream, 0, 0); }
int cudaStreamDestroy(uint64_t) { return kSuccess; }
int cudaStreamQuery(uint64_t) { return kSuccess; }
int cudaStreamSynchronize(uint64_t) { return kSuccess; }
int cudaStreamGetPriority(uint64_t, int* priority) {
  *priority = 0;
  return kSuccess;
}
int cudaStreamWaitEvent(uint64_t, Event*, unsigned) { return kSuccess; }
int cudaStreamIsCapturing(uint64_t stream, int* status) {
  *status = capture_of(stream) == 0 ? 0 : 1;
  return kSuccess;
}
int cudaStreamGetCaptureInfo(uint64_t stream, int* status, unsigned long long* id) {
  const uint64_t capture = capture_of(stream);
  *status = capture == 0 ? 0 : 1;
  if (id != nullptr) *id = capture;
  return kSuccess;
}
// The later interfaces put more arguments behind the first three.
int cudaStreamGetCaptureInfo_v2(uint64_t stream, int* status, unsigned long long* id, void* graph, void* dependencies,
                                size_t* count) {
  if (graph != nullptr) std::memset(graph, 0, sizeof(void*));
  if (dependencies != nullptr) std::memset(dependencies, 0, sizeof(void*));
  if (count != nullptr) *count = 0;
  return cudaStreamGetCaptureInfo(stream, status, id);
}
int cudaStreamGetCaptureInfo_v3(uint64_t stream, int* status, unsigned long long* id, void*, void*, void*, size_t*) {
  return cudaStreamGetCaptureInfo(stream, status, id);
}
int cudaThreadExchangeStreamCaptureMode(int*) { return kSuccess; }

int cudaEventCreateWithFlags(Event** event, unsigned) {
  *event = events.create();
  return kSuccess;
}
int cudaEventCreate(Event** event) { return cudaEventCreateWithFlags(event, 0); }
int cudaEventDestroy(Event* event) {
  events.destroy(event);
  return kSuccess;
}
int cudaEventRecord(Event* event, uint64_t stream) {
  events.record(event, stream);
  return kSuccess;
}
int cudaEventRecordWithFlags(Event* event, uint64_t stream, unsigned) { return cudaEventRecord(event, stream); }
int cudaEventQuery(Event* event) { return events.is_pending(event) ? fail(kNotReady) : kSuccess; }
int cudaEventSynchronize(Event* event) {
  events.wait_for(event);
  return kSuccess;
}

// --- the runtime: what is registered at load time -------------------------------------------------------------------

void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, void*, void*, void*, void*, int*) {}
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}
char __cudaInitModule(void**) { return 1; }

// --- the driver ------------------------------------------------------------------------------------------------------

int cuInit(unsigned) { return kSuccess; }
int cuGetErrorString(int, const char** text) {
  *text = "an error of the oracle";
  return kSuccess;
}
int cuCtxGetCurrent(void** context) {
  *context = &current_card();
  return kSuccess;
}
int cuCtxSetCurrent(void*) { return kSuccess; }
int cuCtxFromGreenCtx(void**, void*) { return kNotSupported; }
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return kSuccess;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  return cudaDeviceGetAttribute(value, attribute, device);
}
int cuDevicePrimaryCtxGetState(int, unsigned* flags, int* active) {
  *flags = 0;
  *active = 1;
  return kSuccess;
}
int cuMemGetAllocationGranularity(size_t* granularity, const void*, int) {
  *granularity = kPage;
  return kSuccess;
}
int cuMemAddressReserve(uint64_t* out, size_t size, size_t, uint64_t, unsigned long long) {
  *out = current_card().reserve(size);
  return kSuccess;
}
int cuMemAddressFree(uint64_t address, size_t) {
  card_of(address).release_range(address);
  return kSuccess;
}
int cuMemCreate(uint64_t* handle, size_t size, const void*, unsigned long long) {
  *handle = current_card().create(size);
  return *handle == 0 ? kOutOfMemory : kSuccess;
}
int cuMemRelease(uint64_t handle) {
  cards[handle % kMostDevices].destroy(handle);
  return kSuccess;
}
int cuMemMap(uint64_t address, size_t size, size_t, uint64_t, unsigned long long) {
  card_of(address).map(address, size);
  return kSuccess;
}
int cuMemUnmap(uint64_t address, size_t size) {
  card_of(address).unmap(address, size);
  return kSuccess;
}
int cuMemSetAccess(uint64_t, size_t, const void*, size_t) { return kSuccess; }
int cuStreamGetCaptureInfo_v3(uint64_t stream, int* status, uint64_t* id, void*, void*, void*, size_t*) {
  unsigned long long capture = 0;
  const int error = cudaStreamGetCaptureInfo(stream, status, &capture);
  if (id != nullptr) *id = capture;
  return error;
}

// What the runtime looks up in the driver by name. What is missing here exists, and refuses to work.
int cudaGetDriverEntryPoint(const char* name, void** out, unsigned long long, int* status) {
  struct Entry {
    const char* name;
    void* function;
  };
#define ENTRY(f) \
  { #f, reinterpret_cast < void*>(&f) }
  static const Entry entries[] = {
      ENTRY(cuInit),          ENTRY(cuGetErrorString),     ENTRY(cuCtxGetCurrent),
      ENTRY(cuCtxSetCurrent), ENTRY(cuCtxFromGreenCtx),    ENTRY(cuDeviceGet),
      ENTRY(cuMemCreate),     ENTRY(cuDeviceGetAttribute), ENTRY(cuDevicePrimaryCtxGetState),
      ENTRY(cuMemMap),        ENTRY(cuMemAddressFree),     ENTRY(cuMemGetAllocationGranularity),
      ENTRY(cuMemUnmap),      ENTRY(cuMemAddressReserve),  ENTRY(cuMemRelease),
      ENTRY(cuMemSetAccess),
  };
#undef ENTRY
  *out = reinterpret_cast<void*>(&not_supported);
  for (const Entry& entry : entries) {
    if (std::strcmp(entry.name, name) == 0) *out = entry.function;
  }
  if (status != nullptr) *status = 0;
  return kSuccess;
}
int cudaGetDriverEntryPoint_ptsz(const char* name, void** out, unsigned long long flags, int* status) {
  return cudaGetDriverEntryPoint(name, out, flags, status);
}
int cudaGetDriverEntryPointByVersion(const char* name, void** out, unsigned, unsigned long long flags, int* status) {
  return cudaGetDriverEntryPoint(name, out, flags, status);
}

// --- the driving program's side --------------------------------------------------------------------------------------

// Of all cards.
void oracle_set_capacity(uint64_t bytes) {
  for (Card& card : cards) card.set_capacity(bytes);
}
void oracle_set_occupied(uint64_t bytes) { cards[0].set_occupied(bytes); }
void oracle_set_devices(int count) { devices = count; }
void oracle_set_placement(int placement, uint64_t seed) {
  for (Card& card : cards) card.set_placement(static_cast<Placement>(placement), seed);
}
void oracle_feed(const uint64_t* addresses, size_t count) { cards[0].feed(addresses, count); }
void oracle_keep_segments(int keeps) { cards[0].keep_segments(keeps != 0); }
// From now on recorded events stay pending until they are completed or waited for.
void oracle_hold_events(int held) { events.hold(held != 0); }
void oracle_complete_events(size_t count) { events.complete(count); }
void oracle_complete_events_of(uint64_t stream, size_t count) { events.complete_of_stream(stream, count); }
void oracle_set_capturing(uint64_t stream, uint64_t id) {
  const std::lock_guard<std::mutex> guard(capture_lock);
  if (id == 0) {
    capturing.erase(stream);
  } else {
    capturing[stream] = id;
  }
}
size_t oracle_call_count(int device) { return cards[device].calls().size(); }
const Call* oracle_calls(int device) { return cards[device].calls().data(); }

// The segment allocator of a pool with its own (torch.cuda.memory.CUDAPluggableAllocator).
void* oracle_pool_allocate(size_t size, int device, uint64_t) {
  return reinterpret_cast<void*>(cards[device].allocate(size));
}
void oracle_pool_release(void* address, size_t, int device, uint64_t) {
  cards[device].release(reinterpret_cast<uint64_t>(address));
}

// Called by the stand-ins that build.py writes for everything else.
int oracle_called(const char* name) {
  if (is_traced()) std::fprintf(stderr, "oracle: %s was called, which does nothing here\n", name);
  return 0;
}
}
