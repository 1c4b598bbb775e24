package audit

import (
	"context"
	"time"

	"kctl/apiserver/internal/request"
)

// slowFrom is the duration from which a request's event shows where the time
// went; upstream's value.
const slowFrom = 500 * time.Millisecond

// layers are the annotations for the time that a slow request spent in each
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

// Slow annotates the event if its request was slow.
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
