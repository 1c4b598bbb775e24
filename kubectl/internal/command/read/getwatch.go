package read

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/printer"
	"kctl/proto/rest"
	"kctl/proto/watch"
)

// follow prints the current state of a target, and then every change to it.
func (g *getOptions) follow(ctx context.Context, targets []lookup.Target) error {
	if len(targets) != 1 {
		return errors.New("watch is only supported on individual resources and resource collections - more than 1 resource was found")
	}
	switch {
	case g.sortBy != "" && g.watchOnly:
		g.Warn("--watch-only requested, --sort-by will be ignored")
	case g.sortBy != "":
		g.Warn("--watch requested, --sort-by will be ignored for watch events received")
	}
	t := targets[0]
	if t.ObjectName != "" {
		// The object must exist now; from then on it is watched as the part of
		// the collection that has its name.
		if _, err := lookup.Fetch(ctx, g.CLI, t, &g.Selection); err != nil {
			return err
		}
		g.Fields, t.ObjectName = "metadata.name="+t.ObjectName, ""
	}
	options := g.Query()
	return lookup.Patiently(ctx, g.CLI, func(ctx context.Context) error { return g.changesOf(ctx, t, options) })
}

func (g *getOptions) changesOf(ctx context.Context, t lookup.Target, options []rest.Option) error {
	if g.TableOutput() {
		return g.followTable(ctx, t, append(options, g.accept()))
	}
	return g.followObjects(ctx, t, options)
}

func (g *getOptions) followTable(ctx context.Context, t lookup.Target, options []rest.Option) error {
	out := g.newTable([]lookup.Target{t}, &t)
	content, err := g.table(ctx, t)
	if err != nil {
		return err
	}
	version := content.ResourceVersion
	if !g.watchOnly {
		if g.sortBy != "" {
			if err := printer.SortTable(content, g.sortBy); err != nil {
				return err
			}
		}
		if err := out.Add(content, string(watch.Added)); err != nil {
			return err
		}
		if err := out.Flush(g.Out); err != nil {
			return err
		}
	}
	return lookup.Changes(ctx, g.CLI, lookup.Watch{Target: t, Version: version, Options: options}, func(event rest.Event) error {
		table, err := g.decodeTable(event.Object)
		if err != nil {
			return err
		}
		if err := out.Add(table, event.Type); err != nil {
			return err
		}
		return out.Flush(g.Out)
	})
}

func (g *getOptions) followObjects(ctx context.Context, t lookup.Target, options []rest.Option) error {
	p, err := printer.New(g.Options)
	if err != nil {
		return err
	}
	client, err := g.Server()
	if err != nil {
		return err
	}
	found, err := lookup.List(ctx, t.In(client), g.Chunk(), options...)
	if err != nil {
		return err
	}
	for i := range found.Items {
		if g.watchOnly {
			break
		}
		if err := g.printChange(p, string(watch.Added), &found.Items[i]); err != nil {
			return err
		}
	}
	return lookup.Changes(ctx, g.CLI, lookup.Watch{Target: t, Version: found.GetResourceVersion(), Options: options},
		func(event rest.Event) error {
			object, err := lookup.Decode(event.Object)
			if err != nil {
				return err
			}
			return g.printChange(p, event.Type, object)
		})
}

func (g *getOptions) printChange(p printer.Printer, event string, object *unstructured.Unstructured) error {
	if g.watchEvents {
		return p.Print(g.Out, &printer.Event{Type: event, Object: object})
	}
	return p.Print(g.Out, object)
}
