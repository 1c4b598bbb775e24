package audit

import (
	"context"
	"time"

	"kctl/apiserver/internal/request"
)

// slowFrom is how long a request may take before its event says where the time went;
// upstream's.
const slowFrom = 500 * time.Millisecond

// layers are the annotations in which events of slow requests have the time of each
// layer.
var layers = map[request.Layer]string{
	request.Queue:              "apf-queue-wait",
	request.MutatingWebhooks:   "mutating-webhook",
	request.ValidatingWebhooks: "validating-webhook",
	request.Authentication:     "authentication",
	request.Authorization:      "authorization",
	request.Impersonation:      "impersonation",
	request.Storage:            "etcd",
	request.Writing:            "response-write",
}

// Slow annotates the event of a request that has taken long.
func (r *Record) Slow(ctx context.Context) {
	total := r.auditor.clock.Since(request.ReceivedFrom(ctx))
	if total <= slowFrom {
		return
	}
	const prefix = "apiserver.latency.k8s.io/"
	for layer, name := range layers {
		if spent := request.SpentFrom(ctx, layer); spent > 0 {
			r.annotate(prefix+name, spent.String())
		}
	}
	r.annotate(prefix+"total", total.String())
}
