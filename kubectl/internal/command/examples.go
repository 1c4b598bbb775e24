package command

import (
	"github.com/spf13/cobra"
)

// examples are those of simple verbs, a line or two each. The others have
// theirs beside their code.
var examples = map[string]string{
	"kctl api-resources": "  kctl api-resources\n" +
		"  kctl api-resources --api-group=apps -o wide\n" +
		"  kctl api-resources --namespaced=false --verbs=list,watch",
	"kctl api-versions":            "  kctl api-versions",
	"kctl apply set-last-applied":  "  kctl apply set-last-applied -f pod.yaml --create-annotation",
	"kctl apply view-last-applied": "  kctl apply view-last-applied pod/web\n  kctl apply view-last-applied -f pod.yaml -o json",
	"kctl auth whoami":             "  kctl auth whoami\n  kctl auth whoami -o yaml",
	"kctl cluster-info":            "  kctl cluster-info",
	"kctl config current-context":  "  kctl config current-context",
	"kctl config delete-cluster":   "  kctl config delete-cluster old",
	"kctl config delete-context":   "  kctl config delete-context old",
	"kctl config delete-user":      "  kctl config delete-user bob",
	"kctl config get-clusters":     "  kctl config get-clusters",
	"kctl config get-contexts":     "  kctl config get-contexts\n  kctl config get-contexts -o name",
	"kctl config get-users":        "  kctl config get-users",
	"kctl config rename-context":   "  kctl config rename-context old new",
	"kctl config set":              "  kctl config set clusters.local.server https://127.0.0.1:6443",
	"kctl config set-cluster": "  kctl config set-cluster local --server=https://127.0.0.1:6443 " +
		"--certificate-authority=ca.crt --embed-certs",
	"kctl config set-credentials": "  kctl config set-credentials alice --client-certificate=alice.crt --client-key=alice.key\n" +
		"  kctl config set-credentials robot --token=TOKEN",
	"kctl config unset":       "  kctl config unset contexts.local.namespace",
	"kctl config use-context": "  kctl config use-context local",
	"kctl config view":        "  kctl config view\n  kctl config view --minify --raw -o json",
	"kctl kuberc set": "  kctl kuberc set --section defaults --command get --option output=wide\n" +
		"  kctl kuberc set --section aliases --name getn --command get --prependarg nodes\n" +
		"  kctl kuberc set --section credentialplugin --policy Allowlist --allowlist-entry command=cloud-login",
	"kctl kuberc view": "  kctl kuberc view\n  kctl kuberc view -o json",
	"kctl create clusterrole": "  kctl create clusterrole reader --verb=get,list,watch --resource=pods,nodes\n" +
		"  kctl create clusterrole health --verb=get --non-resource-url=/healthz",
	"kctl create clusterrolebinding":  "  kctl create clusterrolebinding readers --clusterrole=view --group=developers",
	"kctl create configmap":           "  kctl create configmap settings --from-literal=color=blue --from-literal=size=3",
	"kctl create cronjob":             "  kctl create cronjob tick --image=kctl.local/demo --schedule='*/5 * * * *'",
	"kctl create deployment":          "  kctl create deployment web --image=kctl.local/demo --replicas=2 --port=8080",
	"kctl create ingress":             "  kctl create ingress front --rule=example.org/shop*=shop:80 --class=nginx",
	"kctl create job":                 "  kctl create job once --image=kctl.local/demo -- /demo print hello",
	"kctl create namespace":           "  kctl create namespace team-a",
	"kctl create poddisruptionbudget": "  kctl create poddisruptionbudget web --selector=app=web --min-available=1",
	"kctl create priorityclass":       "  kctl create priorityclass high --value=1000 --description=first",
	"kctl create quota":               "  kctl create quota small --hard=pods=10,requests.cpu=2",
	"kctl create role":                "  kctl create role reader --verb=get,list --resource=pods,pods/log",
	"kctl create rolebinding":         "  kctl create rolebinding readers --role=reader --user=alice --serviceaccount=default:robot",
	"kctl create secret docker-registry": "  kctl create secret docker-registry pull --docker-server=registry.example " +
		"--docker-username=alice --docker-password=PASSWORD",
	"kctl create secret generic":       "  kctl create secret generic door --from-literal=key=KEY",
	"kctl create secret tls":           "  kctl create secret tls front --cert=front.crt --key=front.key",
	"kctl create service clusterip":    "  kctl create service clusterip web --tcp=80:8080",
	"kctl create service externalname": "  kctl create service externalname away --external-name=example.org",
	"kctl create service loadbalancer": "  kctl create service loadbalancer web --tcp=80:8080",
	"kctl create service nodeport":     "  kctl create service nodeport web --tcp=80:8080 --node-port=30080",
	"kctl create serviceaccount":       "  kctl create serviceaccount robot",
	"kctl create token":                "  kctl create token default --duration=1h",
	"kctl options":                     "  kctl options",
	"kctl plugin list":                 "  kctl plugin list\n  kctl plugin list --name-only",
	"kctl token list":                  "  kctl token list",
	"kctl top node":                    "  kctl top node\n  kctl top node --sort-by=memory",
	"kctl top pod":                     "  kctl top pod -A --sort-by=cpu\n  kctl top pod web --containers",
	"kctl version":                     "  kctl version\n  kctl version --client -o json",
}

// addExamples gives verbs that have no examples theirs.
func addExamples(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		addExamples(sub)
	}
	if cmd.Example == "" {
		cmd.Example = examples[cmd.CommandPath()]
	}
}
