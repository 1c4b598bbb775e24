package objects

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"kctl/proto/backoff"
	"kctl/proto/core"
	"kctl/proto/rest"
)

// ttl is how old a secret or config map may be that is not watched. It is less than the
// minute after which running pods' volumes look for changes, so that each look sees
// the current state.
const ttl = 45 * time.Second

// Strategy is how the kubelet gets to know of changed secrets and config maps.
type Strategy = kubeletv1beta1.ResourceChangeDetectionStrategy

// CheckStrategy refuses what is no strategy.
func CheckStrategy(s Strategy) error {
	switch s {
	case kubeletv1beta1.GetChangeDetectionStrategy, kubeletv1beta1.TTLCacheChangeDetectionStrategy,
		kubeletv1beta1.WatchChangeDetectionStrategy:
		return nil
	}
	return fmt.Errorf("unknown strategy %q; there are Get, Cache and Watch", s)
}

// Objects is the kubelet's reader of secrets, config maps and tokens. It is
// safe for concurrent use. What it returns is shared and must not be changed.
type Objects struct {
	secrets    *cache[*core.Secret]
	configMaps *cache[*core.ConfigMap]
	tokens     *tokens
	client     *rest.Client // nil for no API server
	clock      clock.Clock
	strategy   Strategy

	certificates *podCertificates

	mu   sync.Mutex
	pods map[types.UID]references
}

// errNoServer is the error of a kubelet without an API server.
var errNoServer = errors.New("the pod refers to API objects, but this kubelet has no API server")

// New returns an Objects that asks the API server behind client; without a
// client it has nothing. For the strategy Watch, Run has to run.
func New(client *rest.Client, clock clock.Clock, strategy Strategy, logger *zap.Logger) *Objects {
	return &Objects{
		client:       client,
		clock:        clock,
		strategy:     strategy,
		certificates: &podCertificates{client: client, clock: clock},
		secrets: newCache(client, clock, strategy, logger, kind[*core.Secret]{
			name: "secret", resource: core.Secrets, create: func() *core.Secret { return new(core.Secret) },
			immutable: func(s *core.Secret) bool { return ptr.Deref(s.Immutable, false) },
		}),
		configMaps: newCache(client, clock, strategy, logger, kind[*core.ConfigMap]{
			name: "configmap", resource: core.ConfigMaps, create: func() *core.ConfigMap { return new(core.ConfigMap) },
			immutable: func(m *core.ConfigMap) bool { return ptr.Deref(m.Immutable, false) },
		}),
		tokens: newTokens(clock, tokenRequester(client, clock)),
		pods:   map[types.UID]references{},
	}
}

// Run watches the secrets and config maps that registered pods refer to until ctx ends,
// if that is the strategy.
func (o *Objects) Run(ctx context.Context) error {
	if o.client == nil || o.strategy != kubeletv1beta1.WatchChangeDetectionStrategy {
		return nil
	}
	var watches sync.WaitGroup
	watches.Go(func() { o.secrets.run(ctx) })
	watches.Go(func() { o.configMaps.run(ctx) })
	watches.Wait()
	return ctx.Err()
}

// tokenRequester requests tokens of service accounts for their cache.
func tokenRequester(client *rest.Client, clock clock.Clock) requestToken {
	return func(
		ctx context.Context, key tokenKey, request *authenticationv1.TokenRequest, refused bool,
	) (*authenticationv1.TokenRequest, error) {
		if client == nil {
			return nil, errNoServer
		}
		answer := &authenticationv1.TokenRequest{}
		path := core.ServiceAccounts.Path(key.namespace, key.serviceAccount) + "/token"
		return answer, allowed(ctx, clock, refused, func() error { return client.Do(ctx, "POST", path, request, answer) })
	}
}

// forbiddenFor is how long a first refusal by the API server is not taken as
// final.
const forbiddenFor = 2 * time.Second

var forbiddenRetry = backoff.Policy{Initial: 20 * time.Millisecond, Max: 300 * time.Millisecond}

// allowed repeats a refused request for a while: a node authorizer learns from its
// own watch which pods are on the node, and kube-apiserver's often does so a moment
// after the kubelet, so that the pod's first attempt would fail without need. What
// was refused before is asked for only once: by now the authorizer knows the pod.
func allowed(ctx context.Context, clock clock.Clock, refused bool, ask func() error) error {
	began := clock.Now()
	for failures := 1; ; failures++ {
		err := ask()
		if !apierrors.IsForbidden(err) || refused || clock.Since(began) >= forbiddenFor {
			return err
		}
		if interrupted := backoff.Sleep(ctx, clock, forbiddenRetry.Delay(failures)); interrupted != nil {
			return errors.Join(err, interrupted) // it was not asked for long enough to be believed
		}
	}
}

// Register notes what pod refers to, so that it is kept, and is read again
// once. Registering a pod again does nothing.
func (o *Objects) Register(pod *core.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.pods[pod.UID]; known {
		return
	}
	r := referencesOf(pod)
	for name := range r.secrets {
		o.secrets.addReference(name)
	}
	for name := range r.configMaps {
		o.configMaps.addReference(name)
	}
	o.pods[pod.UID] = r
}

// Renew has everything that a registered pod refers to read again once.
func (o *Objects) Renew(uid types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := o.pods[uid]
	for name := range r.secrets {
		o.secrets.renew(name)
	}
	for name := range r.configMaps {
		o.configMaps.renew(name)
	}
}

// Unregister forgets the pod, its tokens and certificates, and what only it referred to.
func (o *Objects) Unregister(uid types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := o.pods[uid]
	delete(o.pods, uid)
	for name := range r.secrets {
		o.secrets.release(name)
	}
	for name := range r.configMaps {
		o.configMaps.release(name)
	}
	o.tokens.forget(uid)
	o.certificates.forget(uid)
}

// Prefetch reads everything that pod's containers need, in parallel, and returns
// when all answers are there or ctx ends. It reports no errors: what fails here
// fails again where it is needed.
func (o *Objects) Prefetch(ctx context.Context, pod *core.Pod) {
	r := contentOf(pod)
	var group sync.WaitGroup
	for name := range r.secrets {
		group.Go(func() { _, _ = o.secrets.Get(ctx, name) })
	}
	for name := range r.configMaps {
		group.Go(func() { _, _ = o.configMaps.Get(ctx, name) })
	}
	group.Wait()
}

// Secret returns the secret; its error is the API's.
func (o *Objects) Secret(ctx context.Context, namespace, name string) (*core.Secret, error) {
	return o.secrets.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name})
}

// ConfigMap returns the config map; its error is the API's.
func (o *Objects) ConfigMap(ctx context.Context, namespace, name string) (*core.ConfigMap, error) {
	return o.configMaps.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name})
}

// Token returns a token of the pod's service account that is bound to the pod:
// the same one until 80 % of its life is over. An empty audience is the API
// server's own.
func (o *Objects) Token(ctx context.Context, pod *core.Pod, audience string, seconds int64) (string, error) {
	return o.tokens.get(ctx, pod, audience, seconds)
}
