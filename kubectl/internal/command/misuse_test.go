package command

import (
	"net/http"
	"strings"
	"testing"
)

// A command line that makes no sense is refused before a server is asked.
func TestMisuse(t *testing.T) {
	cases := []struct {
		args string
		want []string
	}{
		{"gte pods", []string{`error: unknown command "gte" for "kctl"`, "Did you mean this?\n\tget"}},
		{"kustomize a b", []string{"error: specify one path to kustomization.yaml"}},
		{"apply -k . -f x", []string{"error: only one of -f or -k can be specified"}},
		{"apply -k . -R", []string{"error: the -k flag can't be used with -f or -R"}},
		{"apply -k /does/not/exist", []string{"/does/not/exist", "no such file or directory"}},
		{"create --raw=/x -k .", []string{"--raw can only use a single local file or stdin"}},
		{"wait -k . --for=delete", []string{"unknown shorthand flag: 'k'"}},
		{"drain", []string{"error: USAGE: drain NODE"}},
		{"scale deployment x", []string{`required flag(s) "replicas" not set`}},
		{"rollout undone x", []string{`unknown command "undone x"`, "Did you mean this?\n\tundo"}},
		{"rollout status", []string{"error: required resource not specified"}},
		{"set image deployment/x", []string{"error: at least one image update is required"}},
		{"set image deployment/x c=UPPER:::", []string{`invalid image name "UPPER:::"`}},
		{"set env deployment/x", []string{"error: at least one environment variable must be provided"}},
		{"set env deployment/x A=b other", []string{"all resources must be specified before changes: other"}},
		{"set resources deployment/x", []string{"you must specify an update to requests or limits"}},
		{"set resources deployment/x --limits=cpu=much", []string{`limits of cpu: "much"`}},
		{"taint node x", []string{"error: at least one taint update is required"}},
		{"taint node x a=b", []string{"error: invalid taint spec: a=b, name part must consist of alphanumeric characters, ",
			"\nSee 'kctl taint -h' for help and examples\n"}},
		{"taint node x a=b-", []string{"error: invalid taint spec: a=b, name part must consist of"}},
		{"taint node x a-b=c=d:NoSchedule", []string{"error: invalid taint spec: a-b=c=d:NoSchedule\nSee"}},
		{"taint node x a=b:Never", []string{"error: invalid taint effect: Never, unsupported taint effect\nSee 'kctl taint -h'"}},
		{"taint node x a=b:", []string{"error: invalid taint effect: , unsupported taint effect"}},
		{"taint node x a=b: y", []string{"error: all resources must be specified before taint changes: y\n"}},
		{"taint node a=b:NoSchedule", []string{"error: at least one resource name must be specified since 'all' parameter is not set"}},
		{"taint", []string{"error: one or more resources must be specified as <resource> <name>\n"}},
		{"patch pod x -p {", []string{"error: patch is neither JSON nor YAML: unexpected end of JSON input\n"}},
		{"patch pod x --type=json -p [{]", []string{"error: patch is neither JSON nor YAML: invalid character ']'"}},
		{`patch pod x -p "a`, []string{`error: unable to parse "\"a": yaml: `}},
		{"replace --force --dry-run=client -f x", []string{"--dry-run can not be used when --force is set"}},
		{"autoscale deployment x --max=1 --min=2", []string{"--max=MAXPODS must be larger or equal to --min=MINPODS"}},
		{"create quota", []string{"exactly one NAME is required, got 0"}},
		{"create rolebinding x", []string{"exactly one of clusterrole or role must be specified"}},
		{"create pdb x --selector=a=b", []string{"one of min-available or max-unavailable must be specified"}},
		{"create pdb x --selector=a=b --min-available=x%", []string{"invalid format specified for min-available"}},
		{"create job x", []string{"either --image or --from must be specified"}},
		{"create ingress x --rule=nonsense", []string{"rule nonsense is invalid and should be in format"}},
		{"cp a b", []string{"one of src or dest must be a remote file specification"}},
		{"cp a:b c:d", []string{"one of src or dest must be a local file specification"}},
		{"debug x", []string{"error: you must specify --image when not using --copy-to."}},
		{"debug x --copy-to=y", []string{"error: you must specify --image, --set-image or command arguments."}},
		{"debug x --copy-to=y -- sleep 1", []string{"error: you must specify an existing container or a new image when specifying args."}},
		{"debug x --copy-to=y --attach --set-image=a=b", []string{"error: you must specify --container or create a new container using --image in order to attach."}},
		{"debug x --image=a --set-image=a=b", []string{"error: --set-image may only be used with --copy-to."}},
		{"debug x --image=a --same-node", []string{"error: --same-node may only be used with --copy-to."}},
		{"debug x --image=a --replace", []string{"error: --replace may only be used with --copy-to."}},
		{"debug x --image=a --profile=god", []string{"unknown profile: god"}},
		{"debug x --image=a --custom=/does/not/exist", []string{"must pass a container spec json file for custom profile: open /does/not/exist"}},
		{"exec x --pod-running-timeout=0 -- ls", []string{"error: --pod-running-timeout must be higher than zero\nSee 'kctl exec -h'"}},
		{"attach", []string{"error: at least 1 argument is required for attach\n"}},
		{"describe", []string{"error: You must specify the type of resource to describe."}},
		{"attach x --pod-running-timeout=-1s", []string{"error: --pod-running-timeout must be higher than zero"}},
		{"port-forward x 80 --pod-running-timeout=0", []string{"error: --pod-running-timeout must be higher than zero"}},
		{"logs x --pod-running-timeout=0", []string{"error: --pod-running-timeout must be higher than zero"}},
		{"delete -i --raw /x", []string{"--interactive can not be used with --raw"}},
		{"certificate approve", []string{"one or more CSRs must be specified"}},
		{"top pods --sort-by=name", []string{"--sort-by accepts only cpu or memory"}},
		{"completion tcsh", []string{`Unsupported shell type "tcsh"`}},
		{"proxy --accept-hosts=(", []string{"error parsing regexp"}},
		{"get pods --namespcae=web", []string{"error: unknown flag: --namespcae\nDid you mean --namespace?\nSee 'kctl get --help' for usage."}},
		{"get pods --nonsense", []string{"error: unknown flag: --nonsense\nSee 'kctl get --help' for usage."}},
		{"get", []string{"You must specify the type of resource to get."}},
		{"run", []string{"error: NAME is required for run\nSee 'kctl run -h' for help and examples"}},
		{"run x", []string{"error: --image is required"}},
		{"get pods --request-timeout=1p", []string{"Invalid timeout value. Timeout must be a single integer in seconds"}},
		{"get pods --context=nosuch", []string{"error: context was not found for specified context: nosuch"}},
		{"get pods --cluster=nosuch", []string{`error: no server found for cluster "nosuch"`}},
		{"cordon", []string{"error: USAGE: cordon NODE [flags]"}},
		{"list", []string{"Did you mean this?\n\tget\n"}},
		{"auth can-i get /logs --subresource=log", []string{"error: --subresource can not be used with NonResourceURL"}},
		{"run x --image=UPPER:::", []string{`error: invalid image name "UPPER:::": invalid reference format`}},
		{"run x --image=a --image-pull-policy=Maybe", []string{"error: invalid image pull policy: Maybe, valid values are: Always, IfNotPresent, Never"}},
		{"run x --image=a --restart=Maybe", []string{"error: invalid restart policy: Maybe"}},
		{"run x --image=a -t", []string{"-i/--stdin is required for containers with -t/--tty=true"}},
		{"run x --image=a --rm", []string{"--rm should only be used for attached containers"}},
		{"run x --image=a --rm -i --force --grace-period=5", []string{"--force and --grace-period greater than 0 cannot be specified together"}},
		{"run x --image=a --expose", []string{"error: --port must be set when exposing a service"}},
		{"run x --image=a --generator=deployment/apps.v1", []string{`generator "deployment/apps.v1" was removed: use run-pod/v1`}},
		{"run x --image=a --dry-run=sometimes", []string{`invalid dry-run value (sometimes). Must be "none", "server", or "client"`}},
		{"run x --image=a -i --dry-run=client", []string{"--dry-run=[server|client] can't be used with attached containers"}},
		{"run x --image=a --overrides={ --dry-run=client", []string{"error: overrides:"}},
		{"create -f /does/not/exist.yaml", []string{`error: the path "/does/not/exist.yaml" does not exist`}},
		{"create wonder x", []string{"error: Unexpected args: [wonder x]\nSee 'kctl create -h'"}},
		{"apply", []string{"error: must specify one of -f and -k"}},
		{"apply --prune -f x", []string{"all resources selected for prune without explicitly passing --all"}},
		{"delete pods", []string{"error: resource(s) were provided, but no name was specified"}},
		{"delete pods --all --cascade=x", []string{"invalid cascade value (x)"}},
		{"delete pod x --force --grace-period=5", []string{"--force and --grace-period greater than 0 cannot be specified together"}},
		{"replace -f x --grace-period=5", []string{"--grace-period must have --force specified"}},
		{"replace --force -f x --cascade=perhaps", []string{`invalid cascade value (perhaps). Must be "background", "foreground", or "orphan"`}},
		{"run x --image=a --cascade=perhaps", []string{`invalid cascade value (perhaps)`}},
		{"apply -f x --cascade=perhaps", []string{`invalid cascade value (perhaps)`}},
		{"replace -f x --timeout=5s", []string{"--timeout must have --force specified"}},
		{"label pod x a=b a-", []string{"error: can not both modify and remove a label in the same command"}},
		{"taint node n a:NoSchedule- a=b:NoSchedule", []string{"error: can not both modify and remove the following taint(s) in the same command: a=NoSchedule"}},
		{"annotate pod x a=b a-", []string{"can not both modify and remove the following annotation(s) in the same command: a"}},
		{"set env deploy/x A=b A-", []string{"can not both modify and remove the same environment variable in the same command"}},
		{"set env deploy/x -e nothing", []string{"error: environment variables must be of the form key=value: nothing"}},
		{"label pods --all -l a=b c=d", []string{"error: cannot set --all and --selector at the same time"}},
		{"annotate pods --all --field-selector a=b c=d", []string{"error: cannot set --all and --field-selector at the same time"}},
		{"create service externalname x --external-name=a..b", []string{"error: invalid service external name a..b"}},
		{"set env deploy/x 1A=b", []string{`error: "1A" is not a valid key name`}},
		{"set env deploy/x A=b --keys=c", []string{"when specifying --keys, a configmap or secret must be provided with --from"}},
		{"create cm x --from-env-file=a --from-literal=b=c", []string{"error: from-env-file cannot be combined with from-file or from-literal"}},
		{"create clusterrole x --verb=get --non-resource-url=x", []string{"error: nonResourceURL should start with /"}},
		{"create clusterrole x --verb=list --non-resource-url=/x", []string{"error: invalid verb: 'list' for nonResourceURL"}},
		{"api-resources x", []string{"error: unexpected arguments: [x]\nSee 'kctl api-resources -h'"}},
		{"api-resources --namespaced=maybe", []string{`invalid argument "maybe" for "--namespaced" flag`}},
		{"wait pod/x --for=jsonpath={.a}=", []string{"jsonpath wait has to have a value after equal sign"}},
		{"wait pod/x", []string{"error: --for is required"}},
		{"wait pod/x --for=create --for=nonsense", []string{`error: unrecognized condition: "nonsense"`}},
		{"logs", []string{"error: expected 'logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER]'"}},
		{"logs x --since=1s --since-time=2026-01-01T00:00:00Z", []string{"at most one of"}},
		{"logs x y -c z", []string{"error: only one of -c or an inline [CONTAINER] arg is allowed"}},
		{"logs x -l a=b", []string{"error: only a selector (-l) or a POD name is allowed"}},
		{"apply -f x --server-side --dry-run=client", []string{"error: --dry-run=client doesn't work with --server-side"}},
		{"exec x -f y -- ls", []string{"error: resource/name arguments cannot be provided when a path is specified"}},
		{"exec x", []string{"error: you must specify at least one command for the container"}},
		{"exec x ls", []string{"error: exec [POD] [COMMAND] is not supported anymore. Use exec [POD] -- [COMMAND] instead"}},
		{"trace pod/x -o yaml", []string{"--output must be json"}},
		{"trace node/x", []string{`"node/x" is not a pod`}},
		{"label pod x", []string{"error: at least one label update is required"}},
		{"patch pod x -p {} --type=magic", []string{"--type must be one of [json merge strategic]"}},
		{"config set nonsense x", []string{`unable to locate path "nonsense"`}},
		{"config set-context", []string{"you must specify a non-empty context name or --current"}},
	}
	for _, c := range cases {
		t.Run(c.args, func(t *testing.T) {
			asked := false
			host := serve(t, func(w http.ResponseWriter, r *http.Request) { asked = true; http.NotFound(w, r) })
			kctl(t, host, "", strings.Fields(c.args)...).want(t, 1, c.want...)
			if asked {
				t.Error("the server was asked")
			}
		})
	}
}

func TestArgumentsThatNameNothing(t *testing.T) {
	host := serve(t, http.NotFound)
	for args, want := range map[string]string{
		"get nonsense":      "error: the server doesn't have a resource type \"nonsense\"\n",
		"get pod/x node":    "there is no need to specify a resource type as a separate argument",
		"get pod x/y":       "there is no need to specify a resource type as a separate argument",
		"get pod/":          "arguments in resource/name form must have a single resource and name",
		"get pod x -l a=b":  "name cannot be provided when a selector is specified",
		"get pod x -A":      "a resource cannot be retrieved by name across all namespaces",
		"get pod/x -f y":    "you may not specify resource arguments as well",
		"get pods -o bogus": "unable to match a printer suitable for the output format \"bogus\"",
	} {
		kctl(t, host, "", strings.Fields(args)...).want(t, 1, want)
	}
}

// kubectl says this without "error: ", where it asks its mapper and nobody else.
func TestNoSuchResource(t *testing.T) {
	host := serve(t, http.NotFound)
	for _, args := range [][]string{{"explain", "nonsense"}, {"explain", "nonsense.spec", "--api-version=x/v1"},
		{"create", "role", "x", "--verb=get", "--resource=nonsense"}} {
		call := kctl(t, host, "", args...)
		call.want(t, 1)
		if said := call.err.String(); said != "the server doesn't have a resource type \"nonsense\"\n" {
			t.Errorf("%q: %s", args, said)
		}
	}
}
