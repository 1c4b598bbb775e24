package aggregation

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/discovery"
)

// readEvery is how often another server's discovery is read.
const readEvery = time.Minute

// aggregatedType is the media type of aggregated discovery. Its older version
// has the same form.
const aggregatedType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," +
	"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"

// DiscoveryChanged is a number that changes with the results of Remotes and
// Priorities.
func (a *Aggregator) DiscoveryChanged() int64 { return a.discoveryChanges.Load() }

// Priorities are the priorities that APIServices give their groups and versions.
func (a *Aggregator) Priorities() map[string]discovery.Priority { return *a.priorities.Load() }

// Remotes are the groups and versions of other servers, with their discovery
// while they answer.
func (a *Aggregator) Remotes() []discovery.Remote {
	var out []discovery.Remote
	for gv, r := range *a.remotes.Load() {
		out = append(out, discovery.Remote{GroupVersion: gv, Discovery: r.discovery()})
	}
	slices.SortFunc(out, func(a, b discovery.Remote) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Version, b.Version))
	})
	return out
}

// discovery is what the server says of its version now; nil if it does not answer.
func (r *remote) discovery() *apidiscoveryv2.APIVersionDiscovery {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.documents.discovery == nil || !r.documents.fresh || !r.available.Load() {
		return nil
	}
	out := *r.documents.discovery
	out.Freshness = apidiscoveryv2.DiscoveryFreshnessCurrent
	return &out
}

// keepReading reads the documents of one server periodically until ctx ends,
// and at once when it becomes available.
func (a *Aggregator) keepReading(ctx context.Context, r *remote) {
	changed, forget := a.subscribe()
	defer forget()
	for failures := 0; ; {
		turn := r.availableCount.Load()
		pause := readEvery
		if r.available.Load() {
			a.readDiscovery(ctx, r)
			a.readDescription(ctx, r)
			if failures++; r.isFresh() {
				failures = 0
			} else {
				pause = retryPolicy.Delay(failures)
			}
		}
		next := a.options.Clock.After(pause)
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				return
			case <-next:
				waiting = false
			case <-changed:
				waiting = r.availableCount.Load() == turn
			}
		}
	}
}

func (r *remote) isFresh() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.documents.fresh
}

// readDiscovery reads what a server serves now.
func (a *Aggregator) readDiscovery(ctx context.Context, r *remote) {
	r.mu.Lock()
	before := r.documents
	r.mu.Unlock()
	found, etag, err := a.fetchDiscovery(ctx, r, before.discoveryETag)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		a.logger.Warn("another server does not say what it serves", zap.String("apiservice", r.name), zap.Error(err))
	} else if found == nil {
		found = before.discovery // not changed
	}
	r.mu.Lock()
	r.documents.fresh = err == nil
	if err == nil {
		r.documents.discovery, r.documents.discoveryETag = found, etag
	}
	same := r.documents.fresh == before.fresh && reflect.DeepEqual(r.documents.discovery, before.discovery)
	r.mu.Unlock()
	if !same {
		a.discoveryChanges.Add(1)
		a.Notify()
	}
}

// fetchDiscovery asks for aggregated discovery, and for the older document if
// the server does not support it. It returns nil if nothing has changed.
func (a *Aggregator) fetchDiscovery(ctx context.Context, r *remote, etag string) (*apidiscoveryv2.APIVersionDiscovery, string, error) {
	response, body, err := a.send(ctx, r, remoteRequest{path: "/apis", accept: aggregatedType, etag: etag, user: aggregatorUser})
	if err == nil && body == nil {
		return nil, etag, nil
	}
	if err == nil && isAggregated(response.Header.Get("Content-Type")) {
		found, err := fromAggregated(r, body)
		return found, response.Header.Get("ETag"), err
	}
	if response == nil {
		return nil, "", err
	}
	_, body, err = a.send(ctx, r, remoteRequest{path: "/apis/" + r.String(), accept: "application/json", user: aggregatorUser})
	if err != nil {
		return nil, "", err
	}
	found, err := fromPlain(r, body)
	return found, "", err
}

func isAggregated(contentType string) bool {
	kind, parameters, err := mime.ParseMediaType(contentType)
	return err == nil && kind == "application/json" && parameters["as"] == "APIGroupDiscoveryList"
}

// fromAggregated takes the server's version out of all that it serves. Without it, the
// version has no resources: servers of metrics (KEDA's) serve theirs by names that they
// don't know before, and leave them out.
func fromAggregated(r *remote, body []byte) (*apidiscoveryv2.APIVersionDiscovery, error) {
	var list apidiscoveryv2.APIGroupDiscoveryList
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("decode its discovery document: %w", err)
	}
	for i := range list.Items {
		for j := range list.Items[i].Versions {
			if v := &list.Items[i].Versions[j]; list.Items[i].Name == r.Group && v.Version == r.Version {
				return withKinds(v), nil
			}
		}
	}
	return &apidiscoveryv2.APIVersionDiscovery{Version: r.Version}, nil
}

// withKinds adds an empty kind if a server sends none: clients may not expect null.
func withKinds(v *apidiscoveryv2.APIVersionDiscovery) *apidiscoveryv2.APIVersionDiscovery {
	none := &metav1.GroupVersionKind{}
	for i := range v.Resources {
		resource := &v.Resources[i]
		resource.ResponseKind = cmp.Or(resource.ResponseKind, none)
		for j := range resource.Subresources {
			resource.Subresources[j].ResponseKind = cmp.Or(resource.Subresources[j].ResponseKind, none)
		}
	}
	return v
}

// fromPlain turns a list of resources into the newer form.
func fromPlain(r *remote, body []byte) (*apidiscoveryv2.APIVersionDiscovery, error) {
	var list metav1.APIResourceList
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("decode its list of resources: %w", err)
	}
	if list.GroupVersion != r.String() {
		return nil, fmt.Errorf("its list of resources is for %q instead of %s", list.GroupVersion, r.GroupVersion)
	}
	out := &apidiscoveryv2.APIVersionDiscovery{Version: r.Version}
	index := map[string]int{}
	for _, resource := range list.APIResources {
		kind := &metav1.GroupVersionKind{Group: resource.Group, Version: resource.Version, Kind: resource.Kind}
		name, part, isPart := strings.Cut(resource.Name, "/")
		if !isPart {
			scope := apidiscoveryv2.ScopeCluster
			if resource.Namespaced {
				scope = apidiscoveryv2.ScopeNamespace
			}
			index[name] = len(out.Resources)
			out.Resources = append(out.Resources, apidiscoveryv2.APIResourceDiscovery{
				Resource: name, ResponseKind: kind, Scope: scope, SingularResource: resource.SingularName,
				Verbs: resource.Verbs, ShortNames: resource.ShortNames, Categories: resource.Categories,
			})
			continue
		}
		if at, ok := index[name]; ok {
			out.Resources[at].Subresources = append(out.Resources[at].Subresources, apidiscoveryv2.APISubresourceDiscovery{
				Subresource: part, ResponseKind: kind, Verbs: resource.Verbs,
			})
		}
	}
	return out, nil
}
