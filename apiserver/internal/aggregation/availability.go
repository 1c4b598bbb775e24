package aggregation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/apiservice"
	kept "kctl/apiserver/internal/resources/endpoints"
	"kctl/proto/backoff"
)

const (
	// checkEvery is how often an available server is checked.
	checkEvery = 30 * time.Second
	// attempts is how often a server is tried before it counts as unavailable.
	attempts = 3
)

// retryPolicy is the back-off between checks of an unavailable server.
var retryPolicy = backoff.Policy{Initial: time.Second, Max: checkEvery, Jitter: 0.2}

// Check maintains the conditions of all APIServices until ctx ends. Only the
// leader of several API servers runs it; all use what it wrote, so that they
// agree, and none overwrites another.
func (a *Aggregator) Check(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.markLocalAvailable(ctx) })
	group.Go(func() error { return a.forEach(ctx, a.keepChecking) })
	return group.Wait()
}

// keepChecking checks one server periodically and whenever its service changes.
func (a *Aggregator) keepChecking(ctx context.Context, r *remote) {
	changed := make(chan struct{}, 1)
	var watching sync.WaitGroup
	defer watching.Wait() // they end with ctx
	watching.Go(func() {
		named := fields.OneTermEqualSelector(metav1.ObjectNameField, r.service.name)
		a.signalChanges(ctx, changed, a.options.Services, r.service.namespace, registry.ListOptions{Fields: named})
	})
	watching.Go(func() {
		a.signalChanges(ctx, changed, a.options.EndpointSlices, r.service.namespace, registry.ListOptions{Labels: slicesOf(r.service)})
	})
	for failures := 0; ; {
		condition := a.checkAvailability(ctx, r)
		if ctx.Err() != nil {
			return
		}
		err := a.updateCondition(ctx, r.name, condition, r.isFor)
		if err != nil {
			a.logger.Warn("the condition of an APIService could not be written", zap.String("apiservice", r.name), zap.Error(err))
		}
		pause := checkEvery
		if failures++; err != nil || condition.Status != apiregistrationv1.ConditionTrue {
			pause = retryPolicy.Delay(failures)
		} else {
			failures = 0
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
			failures = 0
		case <-a.options.Clock.After(pause):
		}
	}
}

// signalChanges signals every change of some objects until ctx ends.
func (a *Aggregator) signalChanges(ctx context.Context, changed chan struct{}, objects registry.Resource, namespace string,
	of registry.ListOptions) {
	for ctx.Err() == nil {
		start := of
		start.ResourceVersion = "0"
		list, err := objects.List(ctx, namespace, start)
		if err == nil {
			start.ResourceVersion = list.ResourceVersion
			var watcher registry.Watcher
			if watcher, err = objects.Watch(ctx, namespace, start); err == nil {
				signal(changed)
				for range watcher.Events() {
					signal(changed)
				}
			}
		}
		if err != nil && ctx.Err() == nil {
			a.logger.Warn("following a service failed, starting over", zap.String("resource", objects.Info().Name), zap.Error(err))
		}
		_ = backoff.Sleep(ctx, a.options.Clock, retryPolicy.Initial)
	}
}

func unavailable(reason, format string, arguments ...any) *apiservice.Condition {
	return &apiservice.Condition{
		Type: apiregistrationv1.Available, Status: apiregistrationv1.ConditionFalse, Reason: reason, Message: fmt.Sprintf(format, arguments...),
	}
}

// checkAvailability determines whether a server is available, and if not, why.
func (a *Aggregator) checkAvailability(ctx context.Context, r *remote) apiservice.Condition {
	if c := a.checkService(ctx, r.service); c != nil {
		return *c
	}
	if err := a.fetchVersion(ctx, r); err != nil {
		return *unavailable("FailedDiscoveryCheck", "%v", err)
	}
	return apiservice.Condition{
		Type: apiregistrationv1.Available, Status: apiregistrationv1.ConditionTrue, Reason: "Passed", Message: "all checks passed",
	}
}

// checkService returns what a service lacks; nil if nothing.
func (a *Aggregator) checkService(ctx context.Context, to serviceName) *apiservice.Condition {
	service, err := a.service(ctx, to)
	switch {
	case apierrors.IsNotFound(err):
		return unavailable("ServiceNotFound", "service/%s in %q is not present", to.name, to.namespace)
	case err != nil:
		return unavailable("ServiceAccessError", "service/%s in %q cannot be checked due to: %v", to.name, to.namespace, err)
	case service.Spec.Type == corev1.ServiceTypeExternalName:
		return nil
	}
	port := kept.ServicePort(service, to.port)
	if port == nil {
		return unavailable("ServicePortError", "service/%s in %q is not listening on port %d", to.name, to.namespace, to.port)
	}
	found, err := a.endpoints(ctx, to, port.Name)
	switch {
	case err != nil:
		return unavailable("EndpointsAccessError", "service/%s in %q cannot be checked due to: %v", to.name, to.namespace, err)
	case found.slices == 0:
		return unavailable("EndpointsNotFound", "cannot find endpointslices for service/%s in %q", to.name, to.namespace)
	case len(found.addresses) == 0:
		return unavailable("MissingEndpoints", "endpointslices for service/%s in %q have no addresses with port name %q",
			to.name, to.namespace, port.Name)
	}
	return nil
}

// fetchVersion asks a server for the document of its group and version.
func (a *Aggregator) fetchVersion(ctx context.Context, r *remote) error {
	path := "/apis/" + r.String()
	var err error
	for range attempts {
		response, _, failed := a.send(ctx, r, remoteRequest{path: path, user: aggregatorUser})
		if failed == nil {
			return nil
		}
		err = failed
		if response != nil || ctx.Err() != nil {
			break // present, and with a meaning
		}
	}
	host, unresolved := a.resolve(ctx, r.service)
	if unresolved != nil {
		return unresolved
	}
	return fmt.Errorf("failing or missing response from https://%s%s: %w", host, path, err)
}

var errReplaced = errors.New("the APIService was replaced")

// updateCondition writes a condition if it has changed.
func (a *Aggregator) updateCondition(ctx context.Context, name string, c apiservice.Condition,
	still func(*apiservice.APIService) bool) error {
	if known, ok := a.informer.Get("", name); ok && apiservice.HasCondition(known, c) {
		return nil
	}
	_, err := a.options.Store.UpdateTyped(ctx, "", name, "status", func(s *apiservice.APIService) error {
		if !still(s) {
			return errReplaced
		}
		if !apiservice.HasCondition(s, c) {
			apiservice.SetCondition(s, c, a.options.Clock.Now())
		}
		return nil
	})
	if apierrors.IsNotFound(err) || errors.Is(err, errReplaced) || ctx.Err() != nil {
		return nil
	}
	return err
}

// markLocalAvailable marks the server's own APIServices as available.
func (a *Aggregator) markLocalAvailable(ctx context.Context) error {
	changed, forget := a.subscribe()
	defer forget()
	for {
		var retry <-chan time.Time
		a.informer.Each(func(_ informer.Key, s *apiservice.APIService) {
			if s.Spec.Service != nil || apiservice.HasCondition(s, apiservice.LocalCondition()) {
				return
			}
			local := func(s *apiservice.APIService) bool { return s.Spec.Service == nil }
			if err := a.updateCondition(ctx, s.Name, apiservice.LocalCondition(), local); err != nil {
				a.logger.Warn("the condition of an APIService could not be written", zap.String("apiservice", s.Name), zap.Error(err))
				retry = a.options.Clock.After(retryPolicy.Initial)
			}
		})
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		case <-retry:
		}
	}
}
