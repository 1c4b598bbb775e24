package server

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/discover"
	"kctl/kubectl/internal/printer"
)

func newAPIResources(c *frame.CLI) *cobra.Command {
	var output, group, namespaced, sortBy string
	var verbs, categories []string
	var noHeaders, cached bool
	cmd := &cobra.Command{
		Use: "api-resources", Short: "Print the supported API resources on the server", Args: frame.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "" && !slices.Contains(resourceFormats, output) {
				return fmt.Errorf("unable to match a printer suitable for the output format %q, allowed formats are: %s",
					output, strings.Join(resourceFormats, ","))
			}
			if _, err := strconv.ParseBool(namespaced); namespaced != "" && err != nil {
				return frame.FlagError(cmd, fmt.Errorf("invalid argument %q for \"--namespaced\" flag: %w", namespaced, err))
			}
			discovery, err := c.Discovery()
			if err != nil {
				return err
			}
			ask := discovery.Refresh
			if cached {
				ask = discovery.Resources
			}
			all, err := ask(cmd.Context())
			if err != nil {
				return err
			}
			chosen := slices.DeleteFunc(slices.Clone(all), func(r discover.Resource) bool {
				return !r.Preferred || len(r.Verbs) == 0 || cmd.Flags().Changed("api-group") && r.Group != group ||
					namespaced != "" && strconv.FormatBool(r.Namespaced) != namespaced || !hasAll(r, verbs, categories)
			})
			if sortBy != "" && sortBy != "name" && sortBy != "kind" {
				return errors.New("--sort-by accepts only name or kind")
			}
			return printResources(c, chosen, output, sortBy, noHeaders)
		},
	}
	fs := cmd.Flags()
	fs.StringVarP(&output, "output", "o", "", "Output format. One of: (json, yaml, kyaml, name, wide).")
	fs.StringVar(&group, "api-group", "", "Limit to resources in the specified API group.")
	fs.StringVar(&namespaced, "namespaced", "",
		"If false, non-namespaced resources will be returned, otherwise returning namespaced resources by default.")
	fs.Lookup("namespaced").NoOptDefVal = "true"
	fs.StringSliceVar(&verbs, "verbs", nil, "Limit to resources that support the specified verbs.")
	fs.StringSliceVar(&categories, "categories", nil, "Limit to resources that belong to the specified categories.")
	fs.StringVar(&sortBy, "sort-by", "",
		"If non-empty, sort list of resources using specified field. The field can be either 'name' or 'kind'.")
	fs.BoolVar(&noHeaders, "no-headers", false, "When using the default output format, don't print headers.")
	fs.Bool("show-managed-fields", false, "It has no effect: resources have no managed fields.")
	fs.BoolVar(&cached, "cached", false, "Use the cached list of resources if available.")
	return cmd
}

// hasAll tells whether a resource has all of the verbs and is in all of the categories.
func hasAll(r discover.Resource, verbs, categories []string) bool {
	for _, verb := range verbs {
		if !r.Can(verb) {
			return false
		}
	}
	for _, category := range categories {
		if !slices.Contains(r.Categories, category) {
			return false
		}
	}
	return true
}

func printResources(c *frame.CLI, resources []discover.Resource, output, sortBy string, noHeaders bool) error {
	slices.SortStableFunc(resources, func(a, b discover.Resource) int {
		switch sortBy {
		case "name":
			return cmp.Compare(a.Name, b.Name)
		case "kind":
			return cmp.Compare(a.Kind, b.Kind)
		}
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Name, b.Name))
	})
	if output != "" && output != "name" && output != "wide" {
		return printResourceList(c, resources, output)
	}
	out := &printer.Columns{}
	if !noHeaders && output != "name" {
		headers := []string{"NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"}
		if output == "wide" {
			headers = append(headers, "VERBS", "CATEGORIES")
		}
		out.Add(headers...)
	}
	for _, r := range resources {
		if output == "name" {
			out.Add(r.FullName())
			continue
		}
		row := []string{r.Name, strings.Join(r.ShortNames, ","), r.GroupVersion(), strconv.FormatBool(r.Namespaced), r.Kind}
		if output == "wide" {
			row = append(row, strings.Join(r.Verbs, ","), strings.Join(r.Categories, ","))
		}
		out.Add(row...)
	}
	return out.Flush(c.Out)
}

// resourceFormats are those that resources can be printed in.
var resourceFormats = []string{"json", "kyaml", "name", "wide", "yaml"}

// printResourceList prints resources as the API writes them.
func printResourceList(c *frame.CLI, resources []discover.Resource, output string) error {
	list := &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, APIResources: []metav1.APIResource{}}
	for _, r := range resources {
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: r.Name, SingularName: r.Singular, Namespaced: r.Namespaced, Group: r.Group, Version: r.Version, Kind: r.Kind,
			Verbs: r.Verbs, ShortNames: r.ShortNames, Categories: r.Categories,
		})
	}
	p, err := printer.New(printer.Options{Output: output})
	if err != nil {
		return err
	}
	return p.Print(c.Out, list)
}

func newAPIVersions(c *frame.CLI) *cobra.Command {
	return &cobra.Command{
		Use: "api-versions", Short: `Print the supported API versions on the server, in the form of "group/version"`, Args: frame.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			discovery, err := c.Discovery()
			if err != nil {
				return err
			}
			resources, err := discovery.Refresh(cmd.Context())
			if err != nil {
				return err
			}
			var versions []string
			for _, r := range resources {
				versions = append(versions, r.GroupVersion())
			}
			slices.Sort(versions)
			versions = slices.Compact(versions)
			_, err = fmt.Fprintln(c.Out, printer.Visible(strings.Join(versions, "\n")))
			return err
		},
	}
}

func newClusterInfo(c *frame.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use: "cluster-info", Short: "Display cluster information", Args: frame.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := c.Server()
			if err != nil {
				return err
			}
			if _, err := serverVersion(c, cmd); err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.Out,
				"Kubernetes control plane is running at %s\n\nTo further debug and diagnose cluster problems, use '%s cluster-info dump'.\n",
				paint(c, "33", client.URL("").String()), c.Name)
			return err
		},
	}
	cmd.AddCommand(newDump(c))
	return cmd
}

// paint colours a text if colours are allowed.
func paint(c *frame.CLI, color, text string) string {
	if !frame.Colorful(c.Out) {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}
