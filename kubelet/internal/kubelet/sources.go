package kubelet

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"

	"kctl/kubelet/internal/source"
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

// expectAPIPods keeps those pods of the API that the runtime has from manifests with their UIDs,
// until the API is heard.
func (k *Kubelet) expectAPIPods(ctx context.Context) {
	all, err := k.state.Pods(ctx)
	if err != nil {
		k.logger.Warn("which pods an earlier kubelet ran is not known", zap.Error(err))
	}
	uids := map[types.UID]bool{}
	for _, pod := range all {
		if pod.Source == core.ApiserverSource {
			uids[pod.UID] = true
		}
	}
	k.mux.Expect(core.ApiserverSource, uids)
}

// runSources runs the sources that are configured. Those of manifests wait for the runtime; it
// may take minutes to answer, and nothing else waits for it.
func (k *Kubelet) runSources(ctx context.Context, run func(func() error)) {
	expect := sync.OnceFunc(func() {
		if k.client != nil {
			k.expectAPIPods(ctx)
		}
	})
	if k.config.StaticPodPath != "" {
		file := &source.File{Path: k.config.StaticPodPath, NodeName: k.nodeName, Period: k.config.FileCheckFrequency, Clock: k.clock, Logger: k.logger}
		run(func() error {
			expect()
			return file.Run(ctx, k.mux)
		})
	}
	if k.config.StaticPodURL != "" {
		url := &source.HTTP{
			URL: k.config.StaticPodURL, Header: k.config.StaticPodURLHeader, NodeName: k.nodeName, Period: k.config.HTTPCheckFrequency,
			Clock: k.clock, Logger: k.logger, Client: source.NewClient(manifestTimeout),
		}
		run(func() error {
			expect()
			return url.Run(ctx, k.mux)
		})
	}
	if k.client != nil {
		run(func() error { return k.services.Run(ctx) })
		run(func() error { return k.classes.Run(ctx) })
		server := &source.APIServer{Client: k.client, NodeName: k.nodeName, Clock: k.clock, Logger: k.logger}
		run(func() error { return server.Run(ctx, k.mux) })
	}
}

const manifestTimeout = 10 * time.Second
