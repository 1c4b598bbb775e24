package server

import (
	"context"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/admission/lookup"
	"kctl/apiserver/internal/aggregation"
	"kctl/apiserver/internal/customresources"
	"kctl/apiserver/internal/customresources/validationrules"
	"kctl/apiserver/internal/fairness/configcontroller"
	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/request"
	"kctl/apiserver/internal/resources"
	"kctl/apiserver/internal/resources/service"
	"kctl/apiserver/internal/webhookclient"
	"kctl/proto/daemon"
)

// objects are the objects of the API by where they come from: the stores of the
// built-in resources, those of the custom ones, and other servers.
type objects struct {
	*process
	database    *database
	resources   *resources.Set
	definitions *customresources.Definitions
	aggregator  *aggregation.Aggregator
	webhooks    webhookclient.Access // how webhooks are reached
}

func newObjects(d *database) (*objects, error) {
	addresses, ports, err := d.options.ServiceRanges()
	if err != nil {
		return nil, err
	}
	set := resources.New(d.registryOptions(), d.options.EventTTL, service.Ranges{Addresses: addresses, NodePorts: ports})
	webhooks := webhookclient.Access{
		Services: services{services: lookup.New[*corev1.Service](set.Services), slices: set.EndpointSlices},
		Itself:   d.itself.Dial,
	}
	definitions := customresources.New(customresources.Options{Store: set.Definitions, Registry: set.Options(), Webhooks: webhooks})
	proxies := d.options.Aggregation
	aggregator, err := aggregation.New(aggregation.Options{
		Store: set.APIServices, Services: set.Services, EndpointSlices: set.EndpointSlices,
		CertFile: proxies.ProxyCertFile, KeyFile: proxies.ProxyKeyFile, ToEndpoints: proxies.ToEndpoints,
		Draining: d.draining, Metrics: d.metrics, Clock: d.clock, Logger: d.logger,
	})
	if err != nil {
		return nil, err
	}
	d.metrics.MustRegister(heldBack(set), resources.CacheMetrics{Builtin: set, Custom: definitions.CacheStats}, set.Services)
	d.metrics.MustRegister(validationrules.Metrics()...)
	d.metrics.MustRegister(daemon.Features(nil)...)
	return &objects{
		process: d.process, database: d, resources: set, definitions: definitions, aggregator: aggregator, webhooks: webhooks,
	}, nil
}

// heldBack counts the resources that are held back (checkStorage names them).
func heldBack(set *resources.Set) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "apiserver_storage_held_back_resources",
		Help: "Number of resources that can be neither listed nor watched, because something stored of them cannot be read.",
	}, func() float64 { return float64(len(set.HeldBack())) })
}

// checkStorage checks whether all resources have been read. One that is held back because
// of an object takes no server out of service: all others share the same etcd.
func (o *objects) checkStorage(context.Context) error {
	if err := o.resources.Ready(); err != nil {
		return err
	}
	if held := o.resources.HeldBack(); len(held) > 0 {
		return daemon.Remark("held back, because a stored value cannot be read: " + strings.Join(held, ", "))
	}
	return nil
}

// newPods returns an informer of pods.
func (o *objects) newPods() *informer.Informer[informer.Pod] {
	return informer.New(o.resources.Pods, informer.PodOf, informer.Options[informer.Pod]{Index: informer.PodNode}, o.clock, o.logger)
}

// flowControl is what priority and fairness goes by, and maintains even where the flags
// switch it off.
func (o *objects) flowControl() configcontroller.Options {
	return configcontroller.Options{
		Schemas: o.resources.FlowSchemas, Levels: o.resources.PriorityLevels, Seats: o.options.Seats(), Bootstrapped: o.bootstrapped,
		Metrics: o.metrics, Clock: o.clock, Logger: o.logger,
	}
}

// followDefinitions maintains the APIServices of custom resources.
func (o *objects) followDefinitions(ctx context.Context) error {
	return o.aggregator.Follow(ctx, o.definitions)
}

// servesCustom reports whether a request is for a custom resource.
func (o *objects) servesCustom(info *request.Info) bool {
	return o.definitions.Serves(schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.ResourceName})
}
