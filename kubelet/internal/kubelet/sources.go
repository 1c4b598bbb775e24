package kubelet

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/runtimestate"
	"kctl/kubelet/internal/source"
	"kctl/proto/backoff"
	"kctl/proto/core"
)

func (k *Kubelet) sources() []string {
	var names []string
	if k.config.StaticPodPath != "" {
		names = append(names, core.FileSource)
	}
	if k.config.StaticPodURL != "" {
		names = append(names, core.HTTPSource)
	}
	if k.client != nil {
		names = append(names, core.ApiserverSource)
	}
	return names
}

// listRetry is how often to ask a runtime that can't list its pods.
var listRetry = backoff.Policy{Initial: 100 * time.Millisecond, Max: 2 * time.Second, Jitter: 0.2}

// apiPods are the UIDs of those pods that an earlier kubelet ran for the API. A runtime that
// answers with an error is asked again until ctx ends: without it no manifest's pod could run.
func (k *Kubelet) apiPods(ctx context.Context, list func(context.Context) ([]*runtimestate.RunningPod, error)) (map[types.UID]bool, error) {
	all, err := list(ctx)
	for failures := 1; err != nil; failures++ {
		if failures == 1 {
			k.logger.Warn("which pods an earlier kubelet ran is not known; manifests wait for it", zap.Error(err))
		}
		if err := backoff.Sleep(ctx, k.clock, listRetry.Delay(failures)); err != nil {
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

// runSources runs the sources that are configured. Those of manifests wait for the runtime, so that
// none of them takes a pod of the API that it has; it may take minutes to answer, and nothing else
// waits for it.
func (k *Kubelet) runSources(ctx context.Context, run func(func() error)) {
	expect := sync.OnceValue(func() error {
		if k.client == nil {
			return nil
		}
		uids, err := k.apiPods(ctx, k.state.Pods)
		if err == nil {
			k.mux.Expect(core.ApiserverSource, uids)
		}
		return err
	})
	manifests := func(from func(context.Context, *source.Mux) error) {
		run(func() error {
			if err := expect(); err != nil {
				return err
			}
			return from(ctx, k.mux)
		})
	}
	if k.config.StaticPodPath != "" {
		file := &source.File{Path: k.config.StaticPodPath, NodeName: k.nodeName, Period: k.config.FileCheckFrequency, Clock: k.clock, Logger: k.logger}
		manifests(file.Run)
	}
	if k.config.StaticPodURL != "" {
		url := &source.HTTP{
			URL: k.config.StaticPodURL, Header: k.config.StaticPodURLHeader, NodeName: k.nodeName, Period: k.config.HTTPCheckFrequency,
			Clock: k.clock, Logger: k.logger, Client: source.NewClient(manifestTimeout),
		}
		manifests(url.Run)
	}
	if k.client != nil {
		run(func() error { return k.services.Run(ctx) })
		run(func() error { return k.classes.Run(ctx) })
		server := &source.APIServer{Client: k.client, NodeName: k.nodeName, NodeKnown: k.node.Known(), Clock: k.clock, Logger: k.logger}
		run(func() error { return server.Run(ctx, k.mux) })
	}
}

const manifestTimeout = 10 * time.Second
