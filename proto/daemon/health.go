package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Check is one condition of a program's health; it returns why it does not
// hold, or a Remark.
type Check struct {
	Name string
	Func func(ctx context.Context) error
}

// Remark is the error of a check that holds nevertheless: something to look at, shown
// with ?verbose.
type Remark string

// Error implements error.
func (r Remark) Error() string { return string(r) }

// Health answers /healthz, /livez and /readyz from named checks, in upstream's
// format (API docs, "Kubernetes API health endpoints"): "ok", or a line a
// check with ?verbose or where one fails; /readyz/NAME asks for one; ?exclude=
// leaves some out. It is safe for concurrent use.
type Health struct {
	mu      sync.RWMutex
	checks  map[string][]Check // by endpoint
	results checkResults
}

// The endpoints of Health.
const (
	Healthz = "healthz"
	Livez   = "livez"
	Readyz  = "readyz"
)

// NewHealth returns a Health with the check "ping" only, which always holds.
func NewHealth() *Health {
	h := &Health{checks: map[string][]Check{}}
	h.Add("ping", func(context.Context) error { return nil }, Healthz, Livez, Readyz)
	return h
}

// Add adds a check to the endpoints given, or to healthz and readyz.
func (h *Health) Add(name string, check func(ctx context.Context) error, endpoints ...string) {
	if len(endpoints) == 0 {
		endpoints = []string{Healthz, Readyz}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range endpoints {
		h.checks[e] = append(h.checks[e], Check{Name: name, Func: check})
	}
}

// Paths are the paths of the single checks, sorted.
func (h *Health) Paths() []string {
	h.mu.RLock()
	defer h.mu.RUnlock()
	var out []string
	for endpoint, checks := range h.checks {
		for _, c := range checks {
			out = append(out, "/"+endpoint+"/"+c.Name)
		}
	}
	slices.Sort(out)
	return out
}

// Check runs the checks of an endpoint, except those named in except; the error
// says which don't hold.
func (h *Health) Check(ctx context.Context, endpoint string, except ...string) error {
	h.mu.RLock()
	checks := slices.Clone(h.checks[endpoint])
	h.mu.RUnlock()
	checks = slices.DeleteFunc(checks, func(c Check) bool { return slices.Contains(except, c.Name) })
	var errs []error
	for i, err := range runAll(ctx, checks) {
		if err != nil && !errors.As(err, new(Remark)) {
			errs = append(errs, fmt.Errorf("%s: %w", checks[i].Name, err))
		}
	}
	return errors.Join(errs...)
}

// runAll makes all checks at once: several may wait for the same thing, which does not
// answer, and whoever asks waits no longer than for a second or two. A check that panics does
// not hold; in a goroutine of its own it would end the program.
func runAll(ctx context.Context, checks []Check) []error {
	errs := make([]error, len(checks))
	var group sync.WaitGroup
	for i, c := range checks {
		group.Go(func() {
			defer func() {
				if cause := recover(); cause != nil {
					errs[i] = fmt.Errorf("panic: %v", cause)
				}
			}()
			errs[i] = c.Func(ctx)
		})
	}
	group.Wait()
	return errs
}

// ServeHTTP answers /ENDPOINT and /ENDPOINT/CHECK.
func (h *Health) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	endpoint, only, _ := strings.Cut(strings.Trim(r.URL.Path, "/"), "/")
	h.mu.RLock()
	checks := slices.Clone(h.checks[endpoint])
	h.mu.RUnlock()
	if only != "" {
		checks = slices.DeleteFunc(checks, func(c Check) bool { return c.Name != only })
	}
	if len(checks) == 0 {
		http.NotFound(w, r)
		return
	}
	report, healthy := h.run(r.Context(), endpoint, checks, r.URL.Query()["exclude"])
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, verbose := r.URL.Query()["verbose"]
	switch {
	case !healthy:
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(w, "%s%s check failed\n", report, endpoint)
	case verbose:
		fmt.Fprintf(w, "%s%s check passed\n", report, endpoint)
	default:
		fmt.Fprint(w, "ok")
	}
}

func (h *Health) run(ctx context.Context, endpoint string, checks []Check, exclude []string) (report string, healthy bool) {
	var b strings.Builder
	healthy = true
	isExcluded := func(c Check) bool { return slices.Contains(exclude, c.Name) }
	errs := runAll(ctx, slices.DeleteFunc(slices.Clone(checks), isExcluded))
	for _, c := range checks {
		if isExcluded(c) {
			fmt.Fprintf(&b, "[+]%s excluded: ok\n", c.Name)
			continue
		}
		err := errs[0]
		errs = errs[1:]
		remark := Remark("")
		holds := err == nil || errors.As(err, &remark)
		h.results.record(endpoint, c.Name, holds)
		switch {
		case !holds:
			healthy = false
			fmt.Fprintf(&b, "[-]%s failed: %v\n", c.Name, err)
		case remark != "":
			fmt.Fprintf(&b, "[+]%s ok, but %s\n", c.Name, remark)
		default:
			fmt.Fprintf(&b, "[+]%s ok\n", c.Name)
		}
	}
	if unknown := quotedUnknown(checks, exclude); len(unknown) > 0 {
		fmt.Fprintf(&b, "warn: some health checks cannot be excluded: no matches for %s\n", strings.Join(unknown, ","))
	}
	return b.String(), healthy
}

// quotedUnknown are the names that none of the checks has.
func quotedUnknown(checks []Check, names []string) (unknown []string) {
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		if !slices.ContainsFunc(checks, func(c Check) bool { return c.Name == name }) {
			unknown = append(unknown, strconv.Quote(name))
		}
	}
	return unknown
}
