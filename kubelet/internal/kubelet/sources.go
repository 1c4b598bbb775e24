package kubelet

import (
	"context"
	"net/http"
	"time"

	"kctl/kubelet/internal/source"
	"kctl/proto/core"
)

func (k *Kubelet) sources() []string {
	var names []string
	if k.config.ManifestPath != "" {
		names = append(names, core.FileSource)
	}
	if k.config.ManifestURL != "" {
		names = append(names, core.HTTPSource)
	}
	if k.client != nil {
		names = append(names, core.ApiserverSource)
	}
	return names
}

// runSources runs the sources that are configured.
func (k *Kubelet) runSources(ctx context.Context, run func(func() error)) {
	if k.config.ManifestPath != "" {
		file := &source.File{Path: k.config.ManifestPath, NodeName: k.nodeName, Period: k.config.FileEvery, Clock: k.clock, Logger: k.logger}
		run(func() error { return file.Run(ctx, k.mux) })
	}
	if k.config.ManifestURL != "" {
		url := &source.HTTP{
			URL: k.config.ManifestURL, Header: k.config.ManifestHeader, NodeName: k.nodeName, Period: k.config.HTTPEvery,
			Clock: k.clock, Logger: k.logger, Client: &http.Client{Timeout: manifestTimeout},
		}
		run(func() error { return url.Run(ctx, k.mux) })
	}
	if k.client != nil {
		run(func() error { return k.informers.Run(ctx) })
		server := &source.APIServer{Client: k.client, NodeName: k.nodeName, Clock: k.clock, Logger: k.logger}
		run(func() error { return server.Run(ctx, k.mux) })
	}
}

const manifestTimeout = 10 * time.Second
