package audit

import (
	"context"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/proto/backoff"
	"kctl/proto/rest"
)

const (
	webhookTimeout  = 30 * time.Second
	webhookAttempts = 5
	webhookGrowth   = 1.5
	// webhookParallel batches of the usual size have as many events as the usual buffer.
	webhookParallel = 25
)

// webhook posts events to a server.
type webhook struct {
	client *rest.Client
	path   string
	policy backoff.Policy
	clock  clock.Clock
}

// NewWebhook reads the kubeconfig of the events' receiver. Failed requests are
// tried again a few times, first after initial. onProblem hears of what is wrong with that file
// later on (see rest.Config).
func NewWebhook(kubeconfig string, initial time.Duration, clock clock.Clock, onProblem func(error)) (Backend, error) {
	config, err := rest.LoadKubeconfig(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("audit webhook: %w", err)
	}
	config.OnFileProblem = onProblem
	client, err := rest.New(config)
	if err != nil {
		return nil, fmt.Errorf("audit webhook: %w", err)
	}
	return &webhook{client: client, clock: clock, policy: backoff.Policy{
		Initial: initial, Max: 10 * initial, Factor: webhookGrowth, Jitter: 0.2,
	}}, nil
}

func (w *webhook) Name() string { return "webhook" }

func (w *webhook) Parallel() int { return webhookParallel }

func (w *webhook) Close() error {
	w.client.HTTP().CloseIdleConnections()
	return nil
}

func (w *webhook) Deliver(ctx, patient context.Context, events []*Event) error {
	list := &eventList{TypeMeta: metav1.TypeMeta{Kind: "EventList", APIVersion: apiVersion}, Items: events}
	for failures := 1; ; failures++ {
		// Whatever the answer: even one that refuses the events may be a receiver's
		// passing fault, and events that are given up are lost.
		err := w.post(ctx, list)
		if err == nil || failures == webhookAttempts || patient.Err() != nil {
			return err
		}
		_ = backoff.Sleep(patient, w.clock, w.policy.Delay(failures)) // if it ends, the receiver may be back by now
	}
}

func (w *webhook) post(ctx context.Context, list *eventList) error {
	ctx, cancel := context.WithTimeout(ctx, webhookTimeout)
	defer cancel()
	return w.client.Do(ctx, http.MethodPost, w.path, list, nil)
}
