package aggregation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"kctl/apiserver/internal/discovery"
	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/apiservice"
)

// managedLabel marks the APIServices that API servers create for what they
// serve themselves: managedOnStart for built-in groups, which are repaired at every
// start, always for custom resources. Without the label, an object is left
// alone.
const (
	managedLabel   = "kube-aggregator.kubernetes.io/automanaged"
	managedOnStart = "onstart"
	managedAlways  = "true"
)

func localAPIService(gv schema.GroupVersion, mark string) *apiservice.APIService {
	priority := discovery.DefaultPriority(gv)
	return &apiservice.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: apiservice.Name(gv), Labels: map[string]string{managedLabel: mark}},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: gv.Group, Version: gv.Version, GroupPriorityMinimum: priority.Group, VersionPriority: priority.Version,
		},
	}
}

// Bootstrap stores the APIServices of built-in groups, and removes those of
// groups that no longer exist.
func (a *Aggregator) Bootstrap(ctx context.Context, builtin []schema.GroupVersion) error {
	wanted := map[string]bool{}
	for _, gv := range builtin {
		if gv.Group == apiregistrationv1.GroupName {
			continue // as in upstream: this API can't be served elsewhere
		}
		wanted[apiservice.Name(gv)] = true
		if err := a.ensureLocal(ctx, localAPIService(gv, managedOnStart)); err != nil {
			return fmt.Errorf("bootstrap APIService %s: %w", apiservice.Name(gv), err)
		}
	}
	made, _, err := a.options.Store.ListTyped(ctx, "",
		registry.ListOptions{Labels: labels.SelectorFromSet(labels.Set{managedLabel: managedOnStart})})
	if err != nil {
		return err
	}
	for _, s := range made {
		if wanted[s.Name] {
			continue
		}
		if err := a.options.Store.DeleteTyped(ctx, "", s.Name, nil); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

var errNotManaged = errors.New("it is managed by a user")

// ensureLocal stores an APIService, unless there is one that the servers may not
// change.
func (a *Aggregator) ensureLocal(ctx context.Context, want *apiservice.APIService) error {
	have, err := registry.GetStored[*apiservice.APIService](ctx, a.options.Store, "", want.Name)
	if apierrors.IsNotFound(err) {
		_, err = a.options.Store.CreateTyped(ctx, want)
		if apierrors.IsAlreadyExists(err) {
			return nil // another server was quicker
		}
		return err
	}
	if err != nil || mayStay(have, want) {
		return err
	}
	_, err = a.options.Store.UpdateTyped(ctx, "", want.Name, "", func(s *apiservice.APIService) error {
		if mayStay(s, want) {
			return errNotManaged
		}
		s.Spec = want.Spec
		s.Labels[managedLabel] = want.Labels[managedLabel]
		return nil
	})
	if errors.Is(err, errNotManaged) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// mayStay reports whether an APIService may stay as it is: because it is correct,
// or not managed.
func mayStay(have, want *apiservice.APIService) bool {
	mark := have.Labels[managedLabel]
	if mark == "" {
		return true
	}
	h, w := &have.Spec, &want.Spec
	return mark == want.Labels[managedLabel] && h.Service == nil && h.GroupPriorityMinimum == w.GroupPriorityMinimum &&
		h.VersionPriority == w.VersionPriority
}

// Definitions know the groups and versions of custom resources.
type Definitions interface {
	// Unread says why some may be missing from GroupVersions, nil if none is.
	Unread() error
	GroupVersions() []schema.GroupVersion
	// OnChange adds a function to be called when that may have changed, until
	// forget is called.
	OnChange(callback func()) (forget func())
}

// Follow maintains an APIService for every group and version of custom
// resources until ctx ends. Only the leader of several API servers runs it.
func (a *Aggregator) Follow(ctx context.Context, definitions Definitions) error {
	changed, forget := a.subscribe()
	defer forget()
	defined := make(chan struct{}, 1)
	defer definitions.OnChange(func() { signal(defined) })()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-a.Synced():
	}
	for {
		var retry <-chan time.Time
		unread := definitions.Unread()
		if err := a.reconcileLocal(ctx, definitions.GroupVersions(), unread == nil); err != nil && ctx.Err() == nil {
			a.logger.Warn("the APIServices of custom resources are not all right yet, trying again", zap.Error(err))
			retry = a.options.Clock.After(retryPolicy.Initial)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		case <-defined:
		case <-retry:
		}
	}
}

// reconcileLocal creates what is missing, repairs what is wrong, and, if all definitions are
// known, removes what is no longer defined.
func (a *Aggregator) reconcileLocal(ctx context.Context, defined []schema.GroupVersion, all bool) error {
	var errs []error
	for _, gv := range defined {
		want := localAPIService(gv, managedAlways)
		if have, ok := a.informer.Get("", want.Name); !ok || !mayStay(have, want) {
			errs = append(errs, a.ensureLocal(ctx, want))
		}
	}
	if !all {
		return errors.Join(errs...)
	}
	a.informer.Each(func(_ informer.Key, s *apiservice.APIService) {
		if s.Labels[managedLabel] != managedAlways || slices.Contains(defined, apiservice.GroupVersion(s)) {
			return
		}
		only := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &s.UID, ResourceVersion: &s.ResourceVersion}}
		err := a.options.Store.DeleteTyped(ctx, "", s.Name, only)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			errs = append(errs, err)
		}
	})
	return errors.Join(errs...)
}
