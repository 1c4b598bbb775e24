package kubelet

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/node"
	"kctl/kubelet/internal/runtimestate"
	"kctl/kubelet/internal/source"
	"kctl/proto/backoff"
	"kctl/proto/core"
	"kctl/proto/rest"
)

// sources are where pods come from, as configured.
type sources struct {
	*given
	client *rest.Client // nil without an API server
	node   *node.Manager
	state  *runtimestate.Reader
	mux    *source.Mux
	ready  *source.Ready
}

func (g *given) newSources(client *rest.Client, node *node.Manager, state *runtimestate.Reader, events *podEvents) *sources {
	s := &sources{given: g, client: client, node: node, state: state, mux: source.NewMux(g.clock, g.logger)}
	s.mux.Warn = func(pod *core.Pod, reason, message string) {
		events.Laterf(pod, corev1.EventTypeWarning, reason, "%s", message)
	}
	s.ready = source.NewReady(s.names()...)
	return s
}

func (s *sources) names() []string {
	var names []string
	if s.config.Sources.StaticPodPath != "" {
		names = append(names, core.FileSource)
	}
	if s.config.Sources.StaticPodURL != "" {
		names = append(names, core.HTTPSource)
	}
	if s.client != nil {
		names = append(names, core.ApiserverSource)
	}
	return names
}

// listRetry is how often to ask a runtime that can't list its pods.
var listRetry = backoff.Policy{Initial: 100 * time.Millisecond, Max: 2 * time.Second, Jitter: 0.2}

// apiPods are the UIDs of those pods that an earlier kubelet ran for the API. A runtime that
// answers with an error is asked again until ctx ends: without it no manifest's pod could run.
func (s *sources) apiPods(ctx context.Context, list func(context.Context) ([]*runtimestate.RunningPod, error)) (map[types.UID]bool, error) {
	all, err := list(ctx)
	for failures := 1; err != nil; failures++ {
		if failures == 1 {
			s.logger.Warn("which pods an earlier kubelet ran is not known; manifests wait for it", zap.Error(err))
		}
		if err := backoff.Sleep(ctx, s.clock, listRetry.Delay(failures)); err != nil {
			return nil, err
		}
		all, err = list(ctx)
	}
	uids := map[types.UID]bool{}
	for _, pod := range all {
		if pod.Source == core.ApiserverSource {
			uids[pod.UID] = true
		}
	}
	return uids, nil
}

// start runs each. Those of manifests wait for the runtime, so that
// none of them takes a pod of the API that it has; it may take minutes to answer, and nothing else
// waits for it.
func (s *sources) start(ctx context.Context, run func(func() error)) {
	expect := sync.OnceValue(func() error {
		if s.client == nil {
			return nil
		}
		uids, err := s.apiPods(ctx, s.state.Pods)
		if err == nil {
			s.mux.Expect(core.ApiserverSource, uids)
		}
		return err
	})
	manifests := func(from func(context.Context, *source.Mux) error) {
		run(func() error {
			if err := expect(); err != nil {
				return err
			}
			return from(ctx, s.mux)
		})
	}
	if s.config.Sources.StaticPodPath != "" {
		file := &source.File{
			Path:     s.config.Sources.StaticPodPath,
			NodeName: s.identity.NodeName,
			Period:   s.config.Sources.FileCheckFrequency,
			Clock:    s.clock,
			Logger:   s.logger,
		}
		manifests(file.Run)
	}
	if s.config.Sources.StaticPodURL != "" {
		url := &source.HTTP{
			URL: s.config.Sources.StaticPodURL, Header: s.config.Sources.StaticPodURLHeader, NodeName: s.identity.NodeName,
			Period: s.config.Sources.HTTPCheckFrequency, Clock: s.clock, Logger: s.logger, Client: source.NewClient(manifestTimeout),
		}
		manifests(url.Run)
	}
	if s.client != nil {
		server := &source.APIServer{Client: s.client, NodeName: s.identity.NodeName, NodeKnown: s.node.Known(), Clock: s.clock, Logger: s.logger}
		run(func() error { return server.Run(ctx, s.mux) })
	}
}

const manifestTimeout = 10 * time.Second
