// Package eventratelimit bounds how many events are written per second: in
// total, per namespace, per user, or per source and object, as its
// configuration says. It is off by default.
package eventratelimit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/configuration"
	"kctl/proto/core"
)

const (
	// Name is upstream's name.
	Name = "EventRateLimit"

	defaultCacheSize = 4096
	maxCacheSize     = 1 << 20
)

// settings are upstream's Configuration.
type settings struct {
	Limits []limit `json:"limits"`
}

type limit struct {
	Type      string `json:"type"`
	QPS       int32  `json:"qps"`
	Burst     int32  `json:"burst"`
	CacheSize int32  `json:"cacheSize"`
}

// keys are what each type of limit counts by.
var keys = map[string]func(a *admission.Attributes) string{
	"Server":    func(*admission.Attributes) string { return "" },
	"Namespace": func(a *admission.Attributes) string { return a.Namespace },
	"User": func(a *admission.Attributes) string {
		if a.User == nil {
			return ""
		}
		return a.User.Username
	},
	"SourceAndObject": sourceAndObject,
}

func sourceAndObject(a *admission.Attributes) string {
	e, ok := a.Object.(*core.Event)
	if !ok {
		return ""
	}
	o := e.InvolvedObject
	return strings.Join([]string{e.Source.Component, e.Source.Host, o.Kind, o.Namespace, o.Name, string(o.UID), o.APIVersion}, "")
}

// Plugin is the plugin.
type Plugin struct {
	admission.OnWrites
	clock  clock.PassiveClock
	limits []*buckets
}

// New returns the plugin, which must be configured.
func New(files configuration.Files, clock clock.PassiveClock) (*Plugin, error) {
	kind := configuration.Kind{Kind: "Configuration", Versions: []string{"eventratelimit.admission.k8s.io/v1alpha1"}}
	var s settings
	found, err := files.Decode(Name, kind, &s)
	if err != nil {
		return nil, err
	}
	if !found || len(s.Limits) == 0 {
		return nil, errors.New("EventRateLimit needs limits in --admission-control-config-file")
	}
	p := &Plugin{clock: clock}
	for i, l := range s.Limits {
		if err := l.check(); err != nil {
			return nil, fmt.Errorf("configuration of %s: limits[%d]: %w", Name, i, err)
		}
		size := int(l.CacheSize)
		if l.Type == "Server" {
			size = 1
		} else if size == 0 {
			size = defaultCacheSize
		}
		p.limits = append(p.limits, &buckets{limit: l, recent: lru.New(size)})
	}
	return p, nil
}

func (l limit) check() error {
	switch {
	case keys[l.Type] == nil:
		return fmt.Errorf("type %q is not one of Server, Namespace, User and SourceAndObject", l.Type)
	case l.QPS <= 0:
		return errors.New("qps must be positive")
	case l.Burst <= 0:
		return errors.New("burst must be positive")
	case l.CacheSize < 0 || l.CacheSize > maxCacheSize:
		return fmt.Errorf("cacheSize must not be negative or above %d", maxCacheSize)
	}
	return nil
}

// Validate takes a token from every limit and refuses if one has none left.
func (p *Plugin) Validate(_ context.Context, a *admission.Attributes) error {
	if a.DryRun || a.Resource.Name != core.Events.Name {
		return nil
	}
	var refused []string
	for _, l := range p.limits {
		key := keys[l.limit.Type](a)
		if !l.bucket(key).AllowN(p.clock.Now(), 1) {
			refused = append(refused, fmt.Sprintf("limit reached on type %s for key %s", l.limit.Type, key))
		}
	}
	switch len(refused) {
	case 0:
		return nil
	case 1:
		return apierrors.NewTooManyRequestsError(refused[0])
	}
	return apierrors.NewTooManyRequestsError("[" + strings.Join(refused, ", ") + "]")
}

// buckets are the most recently used token buckets of one limit, up to its
// cache size.
type buckets struct {
	limit limit

	mu     sync.Mutex // or two events could each make a bucket for one key
	recent *lru.Cache
}

func (b *buckets) bucket(key string) *rate.Limiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	if found, ok := b.recent.Get(key); ok {
		return found.(*rate.Limiter)
	}
	made := rate.NewLimiter(rate.Limit(b.limit.QPS), int(b.limit.Burst))
	b.recent.Add(key, made)
	return made
}
