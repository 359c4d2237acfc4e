/*
 * A fake NVIDIA Management Library for tests.
 *
 * It answers from a description file named in the environment variable FAKE_NVML (README.md beside this file
 * lists the keys). Whatever the file does not describe answers "not supported".
 *
 * K("...") marks a key below "gpu.N." and S("...") a key of the whole machine: the Python side reads both, and the
 * names of the functions, from this file.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))
#define K(key) key
#define S(key) key

enum {
    SUCCESS = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9,
    VERSION_MISMATCH = 25,
};

enum { MAX_GPUS = 64, MAX_MIG = 16, MAX_KEY = 256 };

/* A handle is the address of one of these; mig counts from 0, -1 is the whole GPU. */
struct device {
    int gpu;
    int mig;
};
typedef struct device *nvmlDevice;

struct line {
    char *key;
    char *value;
    int stars;
};

static struct device devices[MAX_GPUS][MAX_MIG + 1];
static struct line *lines;
static size_t line_count;
static int described;
static int initialized;

/* ------------------------------------------------------------------------------------------- the description -- */

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("fake nvml: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    abort();
}

static char *trim(char *text) {
    while (isspace((unsigned char)*text)) {
        text++;
    }
    size_t length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1])) {
        text[--length] = '\0';
    }
    return text;
}

__attribute__((constructor)) static void load(void) {
    for (int gpu = 0; gpu < MAX_GPUS; gpu++) {
        for (int mig = 0; mig <= MAX_MIG; mig++) {
            devices[gpu][mig] = (struct device){gpu, mig - 1};
        }
    }
    const char *path = getenv("FAKE_NVML");
    if (path == NULL || *path == '\0') {
        return;
    }
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        die("%s: %s", path, strerror(errno));
    }
    char *buffer = NULL;
    size_t size = 0;
    while (getline(&buffer, &size, file) >= 0) {
        char *text = trim(buffer);
        if (*text == '\0' || *text == '#') {
            continue;
        }
        char *equals = strchr(text, '=');
        if (equals == NULL) {
            die("%s: a line without '=': %s", path, text);
        }
        *equals = '\0';
        struct line line = {strdup(trim(text)), strdup(trim(equals + 1)), 0};
        for (const char *c = line.key; *c != '\0'; c++) {
            line.stars += *c == '*';
        }
        lines = realloc(lines, (line_count + 1) * sizeof *lines);
        lines[line_count++] = line;
    }
    free(buffer);
    fclose(file);
    described = 1;
}

/* Does a described key, whose parts may be "*", name this key? */
static int names(const char *pattern, const char *key) {
    for (;;) {
        size_t part = strcspn(key, ".");
        size_t own = strcspn(pattern, ".");
        int star = own == 1 && *pattern == '*';
        if (!star && (own != part || strncmp(pattern, key, part) != 0)) {
            return 0;
        }
        pattern += own;
        key += part;
        if (*pattern == '\0' || *key == '\0') {
            return *pattern == *key;
        }
        pattern++;
        key++;
    }
}

/* The value of the most particular line that names the key (the later of equals), NULL if none or "none". */
static const char *find(const char *key) {
    const struct line *best = NULL;
    for (size_t i = 0; i < line_count; i++) {
        if ((best == NULL || lines[i].stars <= best->stars) && names(lines[i].key, key)) {
            best = &lines[i];
        }
    }
    return best == NULL || strcmp(best->value, "none") == 0 ? NULL : best->value;
}

static void prefix(char *out, nvmlDevice device) {
    if (device == NULL) {
        *out = '\0';
    } else if (device->mig < 0) {
        snprintf(out, MAX_KEY, "gpu.%d.", device->gpu);
    } else {
        snprintf(out, MAX_KEY, "gpu.%d.mig.%d.", device->gpu, device->mig);
    }
}

static void full_key(char *out, nvmlDevice device, const char *format, va_list arguments) {
    prefix(out, device);
    size_t used = strlen(out);
    vsnprintf(out + used, MAX_KEY - used, format, arguments);
}

static int64_t number_of(const char *key, const char *text) {
    if (strcmp(text, "yes") == 0) {
        return 1;
    }
    if (strcmp(text, "no") == 0) {
        return 0;
    }
    char *end = NULL;
    errno = 0;
    int64_t number = (int64_t)strtoull(text, &end, 0);
    if (end == text || *end != '\0' || errno != 0) {
        die("%s: not a number: '%s'", key, text);
    }
    return number;
}

/* A described text; the code of "error N" instead of it; "not supported" for a key that is not described. */
static int vtext(const char **out, nvmlDevice device, const char *format, va_list arguments) {
    char key[MAX_KEY];
    full_key(key, device, format, arguments);
    *out = find(key);
    if (*out == NULL) {
        return NOT_SUPPORTED;
    }
    return strncmp(*out, "error ", 6) == 0 ? (int)number_of(key, *out + 6) : SUCCESS;
}

static int text(const char **out, nvmlDevice device, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int code = vtext(out, device, format, arguments);
    va_end(arguments);
    return code;
}

static int number(int64_t *out, nvmlDevice device, const char *format, ...) {
    va_list arguments, again;
    const char *found;
    va_start(arguments, format);
    va_copy(again, arguments);
    int code = vtext(&found, device, format, arguments);
    if (code == SUCCESS) {
        char key[MAX_KEY];
        full_key(key, device, format, again);
        *out = number_of(key, found);
    }
    va_end(again);
    va_end(arguments);
    return code;
}

static int number32(uint32_t *out, nvmlDevice device, const char *key) {
    int64_t found = 0;
    int code = number(&found, device, key);
    if (code == SUCCESS) {
        *out = (uint32_t)found;
    }
    return code;
}

static int number64(uint64_t *out, nvmlDevice device, const char *key) {
    int64_t found = 0;
    int code = number(&found, device, key);
    if (code == SUCCESS) {
        *out = (uint64_t)found;
    }
    return code;
}

/* A number that has a default where it is not described. */
static int64_t number_or(int64_t otherwise, nvmlDevice device, const char *key) {
    int64_t found = 0;
    return number(&found, device, key) == SUCCESS ? found : otherwise;
}

static int copy(char *out, uint32_t length, const char *from) {
    if (out == NULL) {
        return INVALID_ARGUMENT;
    }
    if (strlen(from) + 1 > length) {
        return INSUFFICIENT_SIZE;
    }
    strcpy(out, from);
    return SUCCESS;
}

/* ---------------------------------------------------------------------------------- faults, before any answer -- */

static const char *fault(nvmlDevice device, const char *kind, const char *function) {
    char key[MAX_KEY];
    const char *found = NULL;
    if (device != NULL) {
        prefix(key, device);
        size_t used = strlen(key);
        snprintf(key + used, sizeof key - used, "%s.%s", kind, function);
        found = find(key);
    }
    if (found == NULL) {
        snprintf(key, sizeof key, "%s.%s", kind, function);
        found = find(key);
    }
    return found;
}

__attribute__((noreturn)) static void hang(void) {
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    for (;;) {
        pause();
    }
}

static int faults(nvmlDevice device, const char *function) {
    const char *found = fault(device, "delay", function);
    if (found != NULL) {
        double seconds = strtod(found, NULL);
        struct timespec left = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
        while (nanosleep(&left, &left) != 0 && errno == EINTR) {
        }
    }
    found = fault(device, "hang", function);
    if (found != NULL && number_of("hang", found)) {
        hang();
    }
    found = fault(device, "abort", function);
    if (found != NULL && number_of("abort", found)) {
        abort();
    }
    found = fault(device, "error", function);
    return found == NULL ? SUCCESS : (int)number_of("error", found);
}

/* What every function does first: for one about a device, and for one about the machine. */
static int about(nvmlDevice device, const char *function) {
    uintptr_t at = (uintptr_t)device, first = (uintptr_t)devices;
    int valid = at >= first && at < first + sizeof devices && (at - first) % sizeof(struct device) == 0;
    int code = faults(valid ? device : NULL, function);
    if (code != SUCCESS) {
        return code;
    }
    if (!initialized) {
        return UNINITIALIZED;
    }
    return valid ? SUCCESS : INVALID_ARGUMENT;
}

static int about_machine(const char *function) {
    int code = faults(NULL, function);
    if (code != SUCCESS) {
        return code;
    }
    return initialized ? SUCCESS : UNINITIALIZED;
}

#define DEVICE(device)                                   \
    do {                                                 \
        int code_ = about((device), __func__);           \
        if (code_ != SUCCESS) {                          \
            return code_;                                \
        }                                                \
    } while (0)

#define MACHINE()                                        \
    do {                                                 \
        int code_ = about_machine(__func__);             \
        if (code_ != SUCCESS) {                          \
            return code_;                                \
        }                                                \
    } while (0)

#define NEED(condition)                                  \
    do {                                                 \
        if (!(condition)) {                              \
            return INVALID_ARGUMENT;                     \
        }                                                \
    } while (0)

#define TRY(call)                                        \
    do {                                                 \
        int code_ = (call);                              \
        if (code_ != SUCCESS) {                          \
            return code_;                                \
        }                                                \
    } while (0)

#define TEXT(function, key)                              \
    API int function(nvmlDevice device, char *out, unsigned length) { \
        const char *found;                               \
        DEVICE(device);                                  \
        TRY(text(&found, device, key));                  \
        return copy(out, length, found);                 \
    }

#define NUMBER(function, key)                            \
    API int function(nvmlDevice device, uint32_t *out) { \
        DEVICE(device);                                  \
        NEED(out != NULL);                               \
        return number32(out, device, key);               \
    }

#define WIDE(function, key)                              \
    API int function(nvmlDevice device, uint64_t *out) { \
        DEVICE(device);                                  \
        NEED(out != NULL);                               \
        return number64(out, device, key);               \
    }

#define PAIR(function, key, other)                       \
    API int function(nvmlDevice device, uint32_t *out, uint32_t *second) { \
        DEVICE(device);                                  \
        NEED(out != NULL && second != NULL);             \
        TRY(number32(out, device, key));                 \
        return number32(second, device, other);          \
    }

/* A number chosen by an argument: the table holds one key for each value of it. */
#define CHOICE(function, type, ...)                      \
    API int function(nvmlDevice device, unsigned choice, type *out) { \
        static const char *const keys[] = {__VA_ARGS__}; \
        int64_t found = 0;                               \
        DEVICE(device);                                  \
        NEED(out != NULL && choice < sizeof keys / sizeof *keys); \
        TRY(number(&found, device, keys[choice]));       \
        *out = (type)found;                              \
        return SUCCESS;                                  \
    }

/* --------------------------------------------------------------------------------------------------- machine -- */

static int start(const char *function) {
    int code = faults(NULL, function);
    if (code == SUCCESS && strcmp(function, "nvmlInit_v2") != 0) {
        code = faults(NULL, "nvmlInit_v2");
    }
    if (code == SUCCESS && !described) {
        code = DRIVER_NOT_LOADED;
    }
    initialized += code == SUCCESS;
    return code;
}

API int nvmlInit(void) {
    return start(__func__);
}

API int nvmlInit_v2(void) {
    return start(__func__);
}

API int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    return start(__func__);
}

API int nvmlShutdown(void) {
    int code = faults(NULL, __func__);
    if (code == SUCCESS && initialized > 0) {
        initialized--;
    }
    return code;
}

API const char *nvmlErrorString(int code) {
    static const char *const texts[] = {
        "Success",
        "Uninitialized",
        "Invalid Argument",
        "Not Supported",
        "Insufficient Permissions",
        "Already Initialized",
        "Not Found",
        "Insufficient Size",
        "Insufficient External Power",
        "Driver Not Loaded",
        "Timeout",
        "Interrupt Request Issue",
        "NVML Shared Library Not Found",
        "Function Not Found",
        "Corrupted infoROM",
        "GPU is lost",
        "GPU requires reset",
        "GPU access blocked by the operating system",
        "Driver/library version mismatch",
        "In use by another client",
        "Insufficient Memory",
        "No data",
        "vGPU ECC not supported",
        "Insufficient Resources",
        "Invalid Frequency",
        "Argument version mismatch",
        "Requested functionality has been deprecated",
        "System is not in ready state",
        "No supported GPUs were found",
        "Resource not in correct state to perform requested operation",
    };
    (void)faults(NULL, __func__);
    return code >= 0 && (size_t)code < sizeof texts / sizeof *texts ? texts[code] : "Unknown Error";
}

API int nvmlSystemGetDriverVersion(char *out, unsigned length) {
    const char *found;
    MACHINE();
    TRY(text(&found, NULL, S("system.driver_version")));
    return copy(out, length, found);
}

/* The only one that answers after a failed init, as in the real library (535, 550). */
API int nvmlSystemGetNVMLVersion(char *out, unsigned length) {
    const char *found;
    TRY(faults(NULL, __func__));
    TRY(text(&found, NULL, S("system.nvml_version")));
    return copy(out, length, found);
}

API int nvmlSystemGetCudaDriverVersion(uint32_t *out) {
    MACHINE();
    NEED(out != NULL);
    return number32(out, NULL, S("system.cuda_driver_version"));
}

API int nvmlSystemGetCudaDriverVersion_v2(uint32_t *out) {
    MACHINE();
    NEED(out != NULL);
    return number32(out, NULL, S("system.cuda_driver_version"));
}

API int nvmlSystemGetProcessName(unsigned pid, char *out, unsigned length) {
    const char *found;
    MACHINE();
    NEED(out != NULL);
    return text(&found, NULL, S("process.%u.name"), pid) == SUCCESS ? copy(out, length, found) : NOT_FOUND;
}

/* ---------------------------------------------------------------------------------------------------- handles -- */

static unsigned gpu_count(void) {
    int64_t count = number_or(0, NULL, S("count"));
    if (count < 0 || count > MAX_GPUS) {
        die("count: 0 to %d GPUs, not %lld", MAX_GPUS, (long long)count);
    }
    return (unsigned)count;
}

static int count_gpus(const char *function, uint32_t *out) {
    TRY(about_machine(function));
    NEED(out != NULL);
    *out = gpu_count();
    return SUCCESS;
}

API int nvmlDeviceGetCount(uint32_t *out) {
    return count_gpus(__func__, out);
}

API int nvmlDeviceGetCount_v2(uint32_t *out) {
    return count_gpus(__func__, out);
}

static int open_gpu(const char *function, unsigned index, nvmlDevice *out) {
    nvmlDevice device = index < MAX_GPUS ? &devices[index][0] : NULL;
    TRY(faults(device, function));
    if (!initialized) {
        return UNINITIALIZED;
    }
    NEED(out != NULL && index < gpu_count());
    *out = device;
    return SUCCESS;
}

API int nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice *out) {
    return open_gpu(__func__, index, out);
}

API int nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice *out) {
    return open_gpu(__func__, index, out);
}

API int nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice *out) {
    const char *found;
    MACHINE();
    NEED(uuid != NULL && out != NULL);
    for (unsigned gpu = 0; gpu < gpu_count(); gpu++) {
        for (unsigned mig = 0; mig <= MAX_MIG; mig++) {
            nvmlDevice device = &devices[gpu][mig];
            if (text(&found, device, K("uuid")) == SUCCESS && strcmp(found, uuid) == 0) {
                *out = device;
                return faults(device, __func__);
            }
        }
    }
    return NOT_FOUND;
}

/* "00000000:1B:00.0", or with a domain of four digits, or without one. */
static int pci_numbers(const char *address, unsigned *domain, unsigned *bus, unsigned *slot) {
    if (sscanf(address, "%x:%x:%x.0", domain, bus, slot) == 3) {
        return 1;
    }
    *domain = 0;
    return sscanf(address, "%x:%x.0", bus, slot) == 2;
}

API int nvmlDeviceGetHandleByPciBusId_v2(const char *address, nvmlDevice *out) {
    unsigned domain, bus, slot, own_domain, own_bus, own_slot;
    const char *found;
    MACHINE();
    NEED(address != NULL && out != NULL && pci_numbers(address, &domain, &bus, &slot));
    for (unsigned gpu = 0; gpu < gpu_count(); gpu++) {
        nvmlDevice device = &devices[gpu][0];
        if (text(&found, device, K("pci.address")) == SUCCESS && pci_numbers(found, &own_domain, &own_bus, &own_slot) &&
            own_domain == domain && own_bus == bus && own_slot == slot) {
            *out = device;
            return faults(device, __func__);
        }
    }
    return NOT_FOUND;
}

API int nvmlDeviceGetIndex(nvmlDevice device, uint32_t *out) {
    DEVICE(device);
    NEED(out != NULL);
    *out = (uint32_t)(device->mig < 0 ? device->gpu : device->mig);
    return SUCCESS;
}

/* --------------------------------------------------------------------------------------------------- identity -- */

TEXT(nvmlDeviceGetName, K("name"))
TEXT(nvmlDeviceGetUUID, K("uuid"))
TEXT(nvmlDeviceGetSerial, K("serial"))
TEXT(nvmlDeviceGetVbiosVersion, K("vbios.version"))
NUMBER(nvmlDeviceGetMinorNumber, K("minor"))
NUMBER(nvmlDeviceGetArchitecture, K("architecture"))

struct pci_info {
    char legacy_address[16];
    uint32_t domain;
    uint32_t bus;
    uint32_t slot;
    uint32_t id;
    uint32_t subsystem_id;
    char address[32];
};

API int nvmlDeviceGetPciInfo_v3(nvmlDevice device, struct pci_info *out) {
    struct pci_info info = {0};
    const char *address;
    DEVICE(device);
    NEED(out != NULL);
    TRY(text(&address, device, K("pci.address")));
    if (!pci_numbers(address, &info.domain, &info.bus, &info.slot)) {
        die("pci.address: not a PCI address: '%s'", address);
    }
    snprintf(info.address, sizeof info.address, "%08X:%02X:%02X.0", info.domain, info.bus, info.slot);
    snprintf(info.legacy_address, sizeof info.legacy_address, "%04X:%02X:%02X.0", info.domain & 0xFFFFu,
             info.bus & 0xFFu, info.slot & 0xFFu);
    info.id = (uint32_t)number_or(0, device, K("pci.id"));
    info.subsystem_id = (uint32_t)number_or(0, device, K("pci.subsystem_id"));
    *out = info;
    return SUCCESS;
}

API int nvmlDeviceGetCudaComputeCapability(nvmlDevice device, int *major, int *minor) {
    const char *found;
    DEVICE(device);
    NEED(major != NULL && minor != NULL);
    TRY(text(&found, device, K("compute_capability")));
    if (sscanf(found, "%d.%d", major, minor) != 2) {
        die("compute_capability: not 'major.minor': '%s'", found);
    }
    return SUCCESS;
}

/* ----------------------------------------------------------------------------------------------------- memory -- */

struct memory {
    uint64_t total;
    uint64_t free;
    uint64_t used;
};

struct memory_v2 {
    uint32_t version;
    uint64_t total;
    uint64_t reserved;
    uint64_t free;
    uint64_t used;
};

static int memory(nvmlDevice device, struct memory_v2 *out) {
    TRY(number64(&out->total, device, K("memory.total")));
    out->reserved = (uint64_t)number_or(0, device, K("memory.reserved"));
    out->used = (uint64_t)number_or(0, device, K("memory.used"));
    out->free = (uint64_t)number_or((int64_t)(out->total - out->reserved - out->used), device, K("memory.free"));
    return SUCCESS;
}

/* The first version counts what is reserved as used. */
API int nvmlDeviceGetMemoryInfo(nvmlDevice device, struct memory *out) {
    struct memory_v2 found = {0};
    DEVICE(device);
    NEED(out != NULL);
    TRY(memory(device, &found));
    *out = (struct memory){found.total, found.free, found.used + found.reserved};
    return SUCCESS;
}

API int nvmlDeviceGetMemoryInfo_v2(nvmlDevice device, struct memory_v2 *out) {
    DEVICE(device);
    NEED(out != NULL);
    if (out->version != (sizeof *out | 2u << 24)) {
        return VERSION_MISMATCH;
    }
    return memory(device, out);
}

API int nvmlDeviceGetBAR1MemoryInfo(nvmlDevice device, struct memory *out) {
    DEVICE(device);
    NEED(out != NULL);
    TRY(number64(&out->total, device, K("bar1.total")));
    out->used = (uint64_t)number_or(0, device, K("bar1.used"));
    out->free = (uint64_t)number_or((int64_t)(out->total - out->used), device, K("bar1.free"));
    return SUCCESS;
}

/* --------------------------------------------------------------------- PCIe, power, clocks, temperature, load -- */

NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, K("pcie.gen.current"))
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, K("pcie.gen.max"))
NUMBER(nvmlDeviceGetGpuMaxPcieLinkGeneration, K("pcie.gen.device_max"))
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, K("pcie.width.current"))
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, K("pcie.width.max"))
NUMBER(nvmlDeviceGetPcieReplayCounter, K("pcie.replays"))
CHOICE(nvmlDeviceGetPcieThroughput, uint32_t, K("pcie.throughput.tx"), K("pcie.throughput.rx"))

NUMBER(nvmlDeviceGetPowerUsage, K("power.draw"))
NUMBER(nvmlDeviceGetPowerManagementLimit, K("power.limit"))
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, K("power.limit_default"))
NUMBER(nvmlDeviceGetEnforcedPowerLimit, K("power.limit_enforced"))
PAIR(nvmlDeviceGetPowerManagementLimitConstraints, K("power.limit_min"), K("power.limit_max"))
WIDE(nvmlDeviceGetTotalEnergyConsumption, K("power.energy"))

CHOICE(nvmlDeviceGetClockInfo, uint32_t, K("clocks.graphics.current"), K("clocks.sm.current"), K("clocks.mem.current"),
       K("clocks.video.current"))
CHOICE(nvmlDeviceGetMaxClockInfo, uint32_t, K("clocks.graphics.max"), K("clocks.sm.max"), K("clocks.mem.max"),
       K("clocks.video.max"))
CHOICE(nvmlDeviceGetApplicationsClock, uint32_t, K("clocks.graphics.application"), K("clocks.sm.application"),
       K("clocks.mem.application"), K("clocks.video.application"))
WIDE(nvmlDeviceGetCurrentClocksEventReasons, K("clocks.event_reasons"))
WIDE(nvmlDeviceGetCurrentClocksThrottleReasons, K("clocks.event_reasons"))
WIDE(nvmlDeviceGetSupportedClocksEventReasons, K("clocks.event_reasons_supported"))
WIDE(nvmlDeviceGetSupportedClocksThrottleReasons, K("clocks.event_reasons_supported"))
NUMBER(nvmlDeviceGetPerformanceState, K("pstate"))

CHOICE(nvmlDeviceGetTemperature, uint32_t, K("temperature"))
CHOICE(nvmlDeviceGetTemperatureThreshold, uint32_t, K("temperature_threshold.shutdown"),
       K("temperature_threshold.slowdown"), K("temperature_threshold.mem_max"), K("temperature_threshold.gpu_max"))

struct temperature_v1 {
    uint32_t version;
    uint32_t sensor;
    int32_t temperature;
};

API int nvmlDeviceGetTemperatureV(nvmlDevice device, struct temperature_v1 *out) {
    int64_t found = 0;
    DEVICE(device);
    NEED(out != NULL);
    if (out->version != (sizeof *out | 1u << 24)) {
        return VERSION_MISMATCH;
    }
    NEED(out->sensor == 0);
    TRY(number(&found, device, K("temperature")));
    out->temperature = (int32_t)found;
    return SUCCESS;
}

struct utilization {
    uint32_t gpu;
    uint32_t memory;
};

API int nvmlDeviceGetUtilizationRates(nvmlDevice device, struct utilization *out) {
    DEVICE(device);
    NEED(out != NULL);
    TRY(number32(&out->gpu, device, K("utilization.gpu")));
    return number32(&out->memory, device, K("utilization.memory"));
}

/* A counter that may grow: so much a second of the machine's monotonic clock. */
static uint64_t grown(uint64_t value, int64_t rate) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return value + (uint64_t)((double)rate * ((double)now.tv_sec + (double)now.tv_nsec / 1e9));
}

static uint64_t microseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

struct violation {
    uint64_t reference;
    uint64_t time;
};

API int nvmlDeviceGetViolationStatus(nvmlDevice device, unsigned policy, struct violation *out) {
    int64_t found = 0, growth = 0;
    DEVICE(device);
    NEED(out != NULL && (policy <= 5 || policy == 10 || policy == 11));
    TRY(number(&found, device, K("violation.%u.time"), policy));
    out->time = (uint64_t)found;
    if (number(&growth, device, K("violation.%u.growth"), policy) == SUCCESS) {
        out->time = grown(out->time, growth);
    }
    out->reference = microseconds();
    if (number(&found, device, K("violation.%u.reference"), policy) == SUCCESS) {
        out->reference = (uint64_t)found;
    }
    return SUCCESS;
}

/* --------------------------------------------------------------------------------------------------- processes -- */

struct process {
    uint32_t pid;
    uint64_t used_memory;
    uint32_t gpu_instance;
    uint32_t compute_instance;
};

/* "pid:bytes[:gpu instance:compute instance]", separated by commas; bytes "?" is not available. */
static int processes(nvmlDevice device, const char *key, uint32_t *count, struct process *out) {
    const char *found;
    uint32_t total = 0;
    NEED(count != NULL);
    TRY(text(&found, device, key));
    for (const char *at = found; *at != '\0';) {
        char *end = NULL;
        struct process process = {(uint32_t)strtoul(at, &end, 10), UINT64_MAX, UINT32_MAX, UINT32_MAX};
        if (end == at || *end != ':') {
            die("%s: not 'pid:bytes': '%s'", key, at);
        }
        at = end + 1;
        if (*at == '?') {
            at++;
        } else {
            process.used_memory = strtoull(at, &end, 10);
            at = end;
        }
        if (*at == ':') {
            process.gpu_instance = (uint32_t)strtoul(at + 1, &end, 10);
            at = end;
        }
        if (*at == ':') {
            process.compute_instance = (uint32_t)strtoul(at + 1, &end, 10);
            at = end;
        }
        if (total < *count && out != NULL) {
            out[total] = process;
        }
        total++;
        at += strspn(at, ", ");
    }
    int fits = total <= *count && (out != NULL || total == 0);
    *count = total;
    return fits ? SUCCESS : INSUFFICIENT_SIZE;
}

#define PROCESSES(function, key)                         \
    API int function(nvmlDevice device, uint32_t *count, struct process *out) { \
        DEVICE(device);                                  \
        return processes(device, key, count, out);       \
    }

PROCESSES(nvmlDeviceGetComputeRunningProcesses_v2, K("processes.compute"))
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3, K("processes.compute"))
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2, K("processes.graphics"))
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, K("processes.graphics"))

/* ----------------------------------------------------------------------------------------------- health, modes -- */

PAIR(nvmlDeviceGetEccMode, K("ecc.current"), K("ecc.pending"))

API int nvmlDeviceGetTotalEccErrors(nvmlDevice device, unsigned type, unsigned counter, uint64_t *out) {
    static const char *const keys[2][2] = {{K("ecc.corrected.volatile"), K("ecc.corrected.aggregate")},
                                           {K("ecc.uncorrected.volatile"), K("ecc.uncorrected.aggregate")}};
    DEVICE(device);
    NEED(out != NULL && type < 2 && counter < 2);
    return number64(out, device, keys[type][counter]);
}

API int nvmlDeviceGetRemappedRows(nvmlDevice device, uint32_t *correctable, uint32_t *uncorrectable, uint32_t *pending,
                                  uint32_t *failed) {
    DEVICE(device);
    NEED(correctable != NULL && uncorrectable != NULL && pending != NULL && failed != NULL);
    TRY(number32(correctable, device, K("remapped_rows.correctable")));
    TRY(number32(uncorrectable, device, K("remapped_rows.uncorrectable")));
    TRY(number32(pending, device, K("remapped_rows.pending")));
    return number32(failed, device, K("remapped_rows.failed"));
}

NUMBER(nvmlDeviceGetRetiredPagesPendingStatus, K("retired_pages.pending"))
NUMBER(nvmlDeviceGetComputeMode, K("compute_mode"))
NUMBER(nvmlDeviceGetPersistenceMode, K("persistence_mode"))
NUMBER(nvmlDeviceGetDisplayActive, K("display_active"))
PAIR(nvmlDeviceGetDriverModel, K("driver_model.current"), K("driver_model.pending"))
PAIR(nvmlDeviceGetDriverModel_v2, K("driver_model.current"), K("driver_model.pending"))

API int nvmlDeviceGetGspFirmwareVersion(nvmlDevice device, char *out) {
    const char *found;
    DEVICE(device);
    TRY(text(&found, device, K("gsp.version")));
    return copy(out, 64, found);
}

PAIR(nvmlDeviceGetGspFirmwareMode, K("gsp.enabled"), K("gsp.default"))

/* -------------------------------------------------------------------------------------------------------- MIG -- */

PAIR(nvmlDeviceGetMigMode, K("mig.current"), K("mig.pending"))

static uint32_t mig_slots(nvmlDevice device) {
    int64_t slots = number_or(0, device, K("mig.current")) == 1 ? number_or(7, device, K("mig.max")) : 0;
    return device->mig >= 0 || slots < 0 ? 0 : (uint32_t)(slots < MAX_MIG ? slots : MAX_MIG);
}

/* None, and no error, where there is no MIG. */
API int nvmlDeviceGetMaxMigDeviceCount(nvmlDevice device, uint32_t *out) {
    DEVICE(device);
    NEED(out != NULL);
    *out = mig_slots(device);
    return SUCCESS;
}

API int nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice device, unsigned index, nvmlDevice *out) {
    const char *found;
    DEVICE(device);
    NEED(out != NULL);
    if (mig_slots(device) == 0) {
        return number_or(-1, device, K("mig.current")) < 0 ? NOT_SUPPORTED : NOT_FOUND;
    }
    NEED(index < mig_slots(device));
    nvmlDevice instance = &devices[device->gpu][index + 1];
    if (text(&found, instance, K("uuid")) != SUCCESS) {
        return NOT_FOUND;
    }
    *out = instance;
    return SUCCESS;
}

API int nvmlDeviceIsMigDeviceHandle(nvmlDevice device, uint32_t *out) {
    DEVICE(device);
    NEED(out != NULL);
    *out = device->mig >= 0;
    return SUCCESS;
}

API int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice device, nvmlDevice *out) {
    DEVICE(device);
    NEED(out != NULL && device->mig >= 0);
    *out = &devices[device->gpu][0];
    return SUCCESS;
}

API int nvmlDeviceGetGpuInstanceId(nvmlDevice device, uint32_t *out) {
    DEVICE(device);
    NEED(out != NULL && device->mig >= 0);
    return number32(out, device, K("gpu_instance_id"));
}

API int nvmlDeviceGetComputeInstanceId(nvmlDevice device, uint32_t *out) {
    DEVICE(device);
    NEED(out != NULL && device->mig >= 0);
    return number32(out, device, K("compute_instance_id"));
}

/* --------------------------------------------------------------------------------- NVLink, fabric, P2P, places -- */

API int nvmlDeviceGetNvLinkState(nvmlDevice device, unsigned link, uint32_t *out) {
    int64_t found = 0;
    DEVICE(device);
    TRY(number(&found, device, K("nvlink.total")));
    NEED(out != NULL && link < (uint64_t)found);
    TRY(number(&found, device, K("nvlink.%u.active"), link));
    *out = (uint32_t)found;
    return SUCCESS;
}

API int nvmlDeviceGetNvLinkVersion(nvmlDevice device, unsigned link, uint32_t *out) {
    int64_t found = 0;
    DEVICE(device);
    TRY(number(&found, device, K("nvlink.total")));
    NEED(out != NULL && link < (uint64_t)found);
    TRY(number(&found, device, K("nvlink.%u.version"), link));
    *out = (uint32_t)found;
    return SUCCESS;
}

struct fabric {
    uint8_t cluster[16];
    int32_t status;
    uint32_t clique;
    uint32_t state;
};

struct fabric_v3 {
    uint32_t version;
    struct fabric fabric;
    uint32_t health_mask;
    uint8_t health_summary; /* from version 3 on */
};

static int fabric(nvmlDevice device, struct fabric *out) {
    const char *uuid = "";
    TRY(number32(&out->state, device, K("fabric.state")));
    out->status = (int32_t)number_or(0, device, K("fabric.status"));
    out->clique = (uint32_t)number_or(0, device, K("fabric.clique_id"));
    memset(out->cluster, 0, sizeof out->cluster);
    if (text(&uuid, device, K("fabric.cluster_uuid")) != SUCCESS) {
        return SUCCESS;
    }
    for (size_t i = 0; i < sizeof out->cluster; i++) {
        unsigned byte = 0;
        uuid += *uuid == '-';
        if (sscanf(uuid, "%2x", &byte) != 1) {
            die("fabric.cluster_uuid: not a UUID");
        }
        out->cluster[i] = (uint8_t)byte;
        uuid += 2;
    }
    return SUCCESS;
}

API int nvmlDeviceGetGpuFabricInfo(nvmlDevice device, struct fabric *out) {
    DEVICE(device);
    NEED(out != NULL);
    return fabric(device, out);
}

API int nvmlDeviceGetGpuFabricInfoV(nvmlDevice device, struct fabric_v3 *out) {
    DEVICE(device);
    NEED(out != NULL);
    int third = out->version == (sizeof *out | 3u << 24);
    if (!third && out->version != (offsetof(struct fabric_v3, health_summary) | 2u << 24)) {
        return VERSION_MISMATCH;
    }
    TRY(fabric(device, &out->fabric));
    out->health_mask = (uint32_t)number_or(0, device, K("fabric.health_mask"));
    if (third) {
        out->health_summary = (uint8_t)number_or(0, device, K("fabric.health_summary"));
    }
    return SUCCESS;
}

API int nvmlDeviceGetP2PStatus(nvmlDevice device, nvmlDevice other, unsigned index, uint32_t *out) {
    static const char *const keys[] = {K("p2p.%u.read"), K("p2p.%u.write"), K("p2p.%u.nvlink"), K("p2p.%u.atomics"),
                                       K("p2p.%u.pci")};
    int64_t found = 0;
    DEVICE(device);
    DEVICE(other);
    NEED(out != NULL && index < sizeof keys / sizeof *keys && device->gpu != other->gpu);
    TRY(number(&found, device, keys[index], (unsigned)other->gpu));
    *out = (uint32_t)found;
    return SUCCESS;
}

/* One direction is enough. */
API int nvmlDeviceGetTopologyCommonAncestor(nvmlDevice device, nvmlDevice other, uint32_t *out) {
    int64_t found = 0;
    DEVICE(device);
    DEVICE(other);
    NEED(out != NULL);
    if (device->gpu == other->gpu) {
        *out = 0;
        return SUCCESS;
    }
    int code = number(&found, device, K("topology.%u"), (unsigned)other->gpu);
    if (code == NOT_SUPPORTED) {
        code = number(&found, other, K("topology.%u"), (unsigned)device->gpu);
    }
    TRY(code);
    *out = (uint32_t)found;
    return SUCCESS;
}

NUMBER(nvmlDeviceGetNumaNodeId, K("numa_node"))

/* Masks, lowest word first, separated by commas. */
static int affinity(nvmlDevice device, const char *key, unsigned words, unsigned long *out) {
    const char *found;
    NEED(out != NULL && words > 0);
    TRY(text(&found, device, key));
    for (unsigned i = 0; i < words; i++) {
        char *end = NULL;
        out[i] = *found == '\0' ? 0 : strtoul(found, &end, 0);
        found = end == NULL ? found : end + strspn(end, ", ");
    }
    return SUCCESS;
}

API int nvmlDeviceGetMemoryAffinity(nvmlDevice device, unsigned words, unsigned long *out, unsigned scope) {
    DEVICE(device);
    NEED(scope < 2);
    return affinity(device, K("memory_affinity"), words, out);
}

API int nvmlDeviceGetCpuAffinity(nvmlDevice device, unsigned words, unsigned long *out) {
    DEVICE(device);
    return affinity(device, K("cpu_affinity"), words, out);
}

/* ----------------------------------------------------------------------------------------------- field values -- */

struct field {
    uint32_t id;
    uint32_t scope;
    int64_t timestamp;
    int64_t latency;
    uint32_t type;
    int32_t code;
    union {
        double d;
        uint32_t ui;
        uint64_t ull;
        int64_t sll;
        int32_t si;
        uint16_t us;
    } value;
};

enum { DOUBLE = 0, UNSIGNED = 1, UNSIGNED_LONG = 2, UNSIGNED_LONG_LONG = 3, SIGNED_LONG_LONG = 4, SIGNED = 5, SHORT = 6 };

enum { FIELD_RECOVERY_ACTION = 230 };

static int field(nvmlDevice device, struct field *out) {
    const char *found;
    int64_t type = 0;
    int code = text(&found, device, K("field.%u.%u"), out->id, out->scope);
    if (code == NOT_SUPPORTED) {
        code = text(&found, device, K("field.%u"), out->id);
    }
    if (code == NOT_SUPPORTED && out->id == FIELD_RECOVERY_ACTION) {
        code = text(&found, device, K("recovery_action"));
    }
    TRY(code);
    if (strchr(found, '.') != NULL) {
        out->type = DOUBLE;
        out->value.d = strtod(found, NULL);
        return SUCCESS;
    }
    int64_t value = number_of("field", found);
    int64_t growth = 0;
    out->type = *found == '-' ? SIGNED : UNSIGNED;
    if (number(&growth, device, K("field.%u.growth"), out->id) == SUCCESS) {
        value = (int64_t)grown((uint64_t)value, growth);
        out->type = UNSIGNED_LONG_LONG;
    } else if (value > UINT32_MAX) {
        out->type = UNSIGNED_LONG_LONG;
    }
    if (number(&type, device, K("field.%u.type"), out->id) == SUCCESS) {
        out->type = (uint32_t)type;
    }
    switch (out->type) {
    case DOUBLE:
        out->value.d = (double)value;
        break;
    case UNSIGNED:
        out->value.ui = (uint32_t)value;
        break;
    case SIGNED:
        out->value.si = (int32_t)value;
        break;
    case SHORT:
        out->value.us = (uint16_t)value;
        break;
    default:
        out->value.sll = value;
    }
    return SUCCESS;
}

API int nvmlDeviceGetFieldValues(nvmlDevice device, int count, struct field *out) {
    DEVICE(device);
    NEED(out != NULL && count > 0);
    for (int i = 0; i < count; i++) {
        out[i].timestamp = (int64_t)microseconds();
        out[i].latency = 0;
        out[i].type = UNSIGNED;
        out[i].value.ull = 0;
        out[i].code = field(device, &out[i]);
    }
    return SUCCESS;
}
