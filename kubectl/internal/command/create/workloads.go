package create

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/command/lookup"
	"kctl/kubectl/internal/command/send"
	"kctl/kubectl/internal/generate"
	"kctl/proto/core"
)

// The resources that kctl creates and the project's other programs don't use.
var (
	deployments = core.Resource{Group: "apps", Version: "v1", Name: "deployments", Kind: "Deployment", Namespaced: true}
	jobs        = core.Resource{Group: "batch", Version: "v1", Name: "jobs", Kind: "Job", Namespaced: true}
	cronJobs    = core.Resource{Group: "batch", Version: "v1", Name: "cronjobs", Kind: "CronJob", Namespaced: true}
	quotas      = core.Resource{Version: "v1", Name: "resourcequotas", Kind: "ResourceQuota", Namespaced: true}
	ingresses   = core.Resource{Group: "networking.k8s.io", Version: "v1", Name: "ingresses", Kind: "Ingress", Namespaced: true}
)

// generator is a verb below `kctl create` that makes one object of its flags.
// make gets the object's name and the arguments after "--".
func generator(c *frame.CLI, use, short string, resource core.Resource,
	make func(name string, args []string) (core.Object, error)) *cobra.Command {
	s := &send.Sender{CLI: c}
	cmd := &cobra.Command{
		Use: use, Short: short,
		RunE: func(cmd *cobra.Command, args []string) error {
			names := args
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				names = args[:dash]
			}
			name, err := frame.OneName(cmd, names)
			if err != nil {
				return err
			}
			object, err := make(name, args[1:])
			if err != nil {
				return err
			}
			return s.CreateGenerated(cmd.Context(), resource, object)
		},
	}
	s.AddCreate(cmd)
	return cmd
}

func newCreateDeployment(c *frame.CLI) *cobra.Command {
	var images []string
	var replicas, port int32
	cmd := generator(c, "deployment NAME --image=image -- [COMMAND] [args...]", "Create a deployment with the specified name", deployments,
		func(name string, args []string) (core.Object, error) {
			return generate.Deployment(name, images, args, replicas, port)
		})
	cmd.Aliases = []string{"deploy"}
	cmd.Flags().StringSliceVar(&images, "image", nil, "Image names to run. A deployment can have multiple images set for multiple containers.")
	cmd.Flags().Int32VarP(&replicas, "replicas", "r", 1, "Number of replicas to create. Default is 1.")
	cmd.Flags().Int32Var(&port, "port", -1, "The containerPort that this deployment exposes.")
	_ = cmd.MarkFlagRequired("image")
	return cmd
}

func newCreateJob(c *frame.CLI) *cobra.Command {
	var image, from string
	var cmd *cobra.Command
	cmd = generator(c, "job NAME --image=image [--from=cronjob/name] -- [COMMAND] [args...]", "Create a job with the specified name", jobs,
		func(name string, args []string) (core.Object, error) {
			switch {
			case (image == "") == (from == ""):
				return nil, errors.New("either --image or --from must be specified")
			case image != "":
				return generate.Job(name, image, args)
			case len(args) > 0:
				return nil, errors.New("cannot specify --from and command")
			}
			cron, err := lookup.One(cmd.Context(), c, from)
			if err != nil {
				return nil, err
			}
			if cron.GetKind() != cronJobs.Kind {
				return nil, errors.New("from must be an existing cronjob")
			}
			return generate.JobFrom(name, cron)
		})
	cmd.Flags().StringVar(&image, "image", "", "Image name to run.")
	cmd.Flags().StringVar(&from, "from", "", "The name of the resource to create a Job from (only cronjob is supported).")
	return cmd
}

func newCreateCronJob(c *frame.CLI) *cobra.Command {
	var image, schedule, restart string
	cmd := generator(c, "cronjob NAME --image=image --schedule='0/5 * * * ?' -- [COMMAND] [args...]",
		"Create a cron job with the specified name", cronJobs,
		func(name string, args []string) (core.Object, error) {
			return generate.CronJob(name, image, schedule, restart, args)
		})
	cmd.Aliases = []string{"cj"}
	cmd.Flags().StringVar(&image, "image", "", "Image name to run.")
	cmd.Flags().StringVar(&schedule, "schedule", "", "A schedule in the Cron format the job should be run with.")
	cmd.Flags().StringVar(&restart, "restart", "", "job's restart policy. supported values: OnFailure, Never")
	_ = cmd.MarkFlagRequired("image")
	_ = cmd.MarkFlagRequired("schedule")
	return cmd
}

func newCreateQuota(c *frame.CLI) *cobra.Command {
	var hard, scopes string
	cmd := generator(c, "quota NAME [--hard=key1=value1,key2=value2] [--scopes=Scope1,Scope2]", "Create a quota with the specified name",
		quotas,
		func(name string, _ []string) (core.Object, error) { return generate.Quota(name, hard, scopes) })
	cmd.Aliases = []string{"resourcequota"}
	cmd.Flags().StringVar(&hard, "hard", "", "A comma-delimited set of resource=quantity pairs that define a hard limit.")
	cmd.Flags().StringVar(&scopes, "scopes", "", "A comma-delimited set of quota scopes that must all match each object tracked by the quota.")
	return cmd
}

func newCreatePriorityClass(c *frame.CLI) *cobra.Command {
	var value int32
	var isDefault bool
	var description, preemption string
	cmd := generator(c, "priorityclass NAME --value=VALUE --global-default=BOOL", "Create a priority class with the specified name",
		core.PriorityClasses,
		func(name string, _ []string) (core.Object, error) {
			return generate.PriorityClass(name, value, isDefault, description, preemption), nil
		})
	cmd.Aliases = []string{"pc"}
	cmd.Flags().Int32Var(&value, "value", 0, "the value of this priority class.")
	cmd.Flags().BoolVar(&isDefault, "global-default", false,
		"global-default specifies whether this PriorityClass should be considered as the default priority.")
	cmd.Flags().StringVar(&description, "description", "",
		"description is an arbitrary string that usually provides guidelines on when this priority class should be used.")
	cmd.Flags().StringVar(&preemption, "preemption-policy", "PreemptLowerPriority",
		"preemption-policy is the policy for preempting pods with lower priority.")
	return cmd
}

func newCreateDisruptionBudget(c *frame.CLI) *cobra.Command {
	var selector, low, high string
	cmd := generator(c, "poddisruptionbudget NAME --selector=SELECTOR --min-available=N",
		"Create a pod disruption budget with the specified name", core.PodDisruptionBudgets,
		func(name string, _ []string) (core.Object, error) {
			return generate.DisruptionBudget(name, selector, low, high)
		})
	cmd.Aliases = []string{"pdb"}
	cmd.Flags().StringVar(&selector, "selector", "",
		"A label selector to use for this budget. Only equality-based selector requirements are supported.")
	cmd.Flags().StringVar(&low, "min-available", "", "The minimum number or percentage of available pods this budget requires.")
	cmd.Flags().StringVar(&high, "max-unavailable", "", "The maximum number or percentage of unavailable pods this budget requires.")
	_ = cmd.MarkFlagRequired("selector")
	return cmd
}

func newCreateIngress(c *frame.CLI) *cobra.Command {
	var class, backend string
	var rules, annotations []string
	cmd := generator(c, "ingress NAME --rule=host/path=service:port[,tls[=secret]]", "Create an ingress with the specified name", ingresses,
		func(name string, _ []string) (core.Object, error) {
			return generate.Ingress(name, class, backend, rules, annotations)
		})
	cmd.Aliases = []string{"ing"}
	cmd.Flags().StringVar(&class, "class", "", "Ingress Class to be used")
	cmd.Flags().StringVar(&backend, "default-backend", "", "Default service for backend, in format of svcname:port")
	cmd.Flags().StringArrayVar(&rules, "rule", nil,
		"Rule in format host/path=service:port[,tls=secretname]. Paths containing the leading character '*' are considered pathType=Prefix.")
	cmd.Flags().StringArrayVar(&annotations, "annotation", nil, "Annotation to insert in the ingress object, in the format annotation=value")
	return cmd
}

func newCreateService(c *frame.CLI) *cobra.Command {
	cmd := frame.Group("service", "Create a service using a specified subcommand")
	cmd.Aliases = []string{"svc"}
	for _, each := range []struct{ verb, kind, short string }{
		{"clusterip", "ClusterIP", "Create a ClusterIP service"},
		{"nodeport", "NodePort", "Create a NodePort service"},
		{"loadbalancer", "LoadBalancer", "Create a LoadBalancer service"},
		{"externalname", "ExternalName", "Create an ExternalName service"},
	} {
		cmd.AddCommand(newCreateServiceOf(c, each.verb, each.kind, each.short))
	}
	return cmd
}

func newCreateServiceOf(c *frame.CLI, verb, kind, short string) *cobra.Command {
	var settings []string
	o := generate.ServiceOptions{Type: kind}
	var nodePort int32
	cmd := generator(c, verb+" NAME [--tcp=port:targetPort]", short, core.Services, func(name string, _ []string) (core.Object, error) {
		var err error
		if o.Ports, err = generate.TCPPorts(settings); err != nil {
			return nil, err
		}
		if len(o.Ports) == 0 && o.ClusterIP != "None" && kind != "ExternalName" {
			return nil, errors.New("at least one tcp port specifier must be provided")
		}
		if kind == "ExternalName" && len(validation.IsDNS1123Subdomain(o.ExternalName)) > 0 {
			return nil, fmt.Errorf("invalid service external name %s", o.ExternalName)
		}
		for i := range o.Ports {
			o.Ports[i].NodePort = nodePort
		}
		o.Labels = map[string]string{"app": name}
		o.Selector = o.Labels
		return generate.Service(name, o)
	})
	cmd.Flags().StringSliceVar(&settings, "tcp", nil, "Port pairs can be specified as '<port>:<targetPort>'.")
	switch kind {
	case "ClusterIP":
		cmd.Flags().StringVar(&o.ClusterIP, "clusterip", "",
			"Assign your own ClusterIP or set to 'None' for a 'headless' service (no loadbalancing).")
	case "NodePort":
		cmd.Flags().Int32Var(&nodePort, "node-port", 0, "Port used to expose the service on each node in a cluster.")
	case "ExternalName":
		cmd.Flags().StringVar(&o.ExternalName, "external-name", "", "External name of service")
		_ = cmd.MarkFlagRequired("external-name")
	}
	return cmd
}
