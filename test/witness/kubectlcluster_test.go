package witness_test

import (
	"fmt"
	"os/exec"
	"strings"
)

// watching: get -w, and wait.
func watching(u user, _ string) {
	u.run("create", "configmap", "seen", "--from-literal=a=b")
	lines, stop := u.speaks("get", "configmap", "seen", "-w", "-o", "jsonpath={.data.a}{\"\\n\"}")
	defer stop()
	for i, want := range []string{"b", "c", "d"} {
		if !lines.Scan() || lines.Text() != want {
			u.Fatalf("the watch says %q, want %q; %v", lines.Text(), want, lines.Err())
		}
		if i < 2 {
			u.run("patch", "configmap", "seen", "-p", fmt.Sprintf(`{"data":{"a":"%c"}}`, 'c'+i))
		}
	}
	gone, args := u.command(nil, []string{"wait", "configmap/seen", "--for=delete", "--timeout=60s"})
	wait := exec.CommandContext(u.Context(), gone, args...)
	wait.Env = u.c.Env()
	if err := wait.Start(); err != nil {
		u.Fatal(err)
	}
	u.run("delete", "configmap", "seen")
	if err := wait.Wait(); err != nil && u.minor >= 24 { // older kubectls fail if it is already gone
		u.Errorf("wait for the end: %v", err)
	}
}

// rights: who may do what.
func rights(u user, _ string) {
	robot := "--as=system:serviceaccount:" + u.namespace + ":reader"
	u.run("create", "serviceaccount", "reader")
	u.is(u.run("auth", "can-i", "create", "pods"), "yes")
	u.says(u.try("", nil, "auth", "can-i", "get", "configmaps", robot).Stdout, "no")
	u.says(u.fails("", "get", "configmaps", robot), "(Forbidden)",
		fmt.Sprintf(`User "system:serviceaccount:%s:reader" cannot list resource "configmaps" in API group "" in the namespace %q`, u.namespace, u.namespace))
	u.is(u.run("create", "role", "reads", "--verb=get,list", "--resource=configmaps,pods/log"), "role.rbac.authorization.k8s.io/reads created")
	u.run("create", "rolebinding", "reads", "--role=reads", "--serviceaccount="+u.namespace+":reader")
	u.eventually("the robot reads", "auth", "can-i", "get", "configmaps", robot)
	u.is(u.run("get", "configmaps", "-o", "name", robot, "-l", "no=such"), "")
	u.says(u.run("auth", "can-i", "--list", robot), "configmaps", "pods/log", "[get list]", "selfsubjectaccessreviews.authorization.k8s.io")
	u.says(u.run("describe", "role", "reads"), "configmaps", "[get list]")
	u.says(u.run("describe", "rolebinding", "reads"), "reader", "Role")
	u.says(u.given(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"reads","namespace":"`+u.namespace+
		`"},"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["list"]}]}`,
		"auth", "reconcile", "-f", "-"), "reads reconciled")
	u.eventually("the robot lists secrets", "auth", "can-i", "list", "secrets", robot)
	if u.minor >= 27 {
		u.says(u.run("auth", "whoami"), "Username", "Groups", "system:masters")
	}
	if u.minor >= 24 {
		token := strings.TrimSpace(u.run("create", "token", "reader", "--duration=10m"))
		u.says(u.run("get", "secrets", "--token="+token, "--as="+strings.TrimPrefix(robot, "--as=")), "")
	}
	u.run("delete", "role,rolebinding,serviceaccount", "--all")
}

// workloads are served here, but their controllers are upstream's: kubectl can
// change and read them.
func workloads(u user, _ string) {
	u.is(u.run("create", "deployment", "web", "--image=registry.test/web:1"), "deployment.apps/web created")
	u.says(u.run("get", "deployments", "-o", "wide"), "UP-TO-DATE", "AVAILABLE", "web", "0/1", "registry.test/web:1", "app=web")
	u.is(u.run("scale", "deployment", "web", "--replicas=3"), "deployment.apps/web scaled")
	u.says(u.fails("", "scale", "deployment", "web", "--current-replicas=1", "--replicas=2"), "xpected replicas to be 1, was 3")
	u.is(u.run("get", "deployment", "web", "-o", "jsonpath={.spec.replicas}"), "3")
	u.is(u.run("set", "image", "deployment/web", "web=registry.test/web:2"), "deployment.apps/web image updated")
	u.is(u.run("set", "env", "deployment/web", "A=b"), "deployment.apps/web env updated")
	u.is(u.run("set", "resources", "deployment/web", "--limits=cpu=1,memory=64Mi"), "deployment.apps/web resource requirements updated")
	u.is(u.run("rollout", "restart", "deployment/web"), "deployment.apps/web restarted")
	u.is(u.run("rollout", "pause", "deployment/web"), "deployment.apps/web paused")
	u.is(u.run("rollout", "resume", "deployment/web"), "deployment.apps/web resumed")
	u.says(u.run("rollout", "history", "deployment/web"), "deployment.apps/web")
	u.says(u.run("rollout", "status", "deployment/web", "--watch=false"), "Waiting for deployment")
	u.is(u.run("autoscale", "deployment", "web", "--max=5", "--cpu-percent=50"), "horizontalpodautoscaler.autoscaling/web autoscaled")
	u.says(u.run("describe", "hpa", "web"), "Deployment/web", "50%")
	u.is(u.run("expose", "deployment", "web", "--port=80"), "service/web exposed")
	u.says(u.run("get", "service", "web"), "ClusterIP", "80/TCP")
	u.says(u.run("describe", "deployment", "web"), "registry.test/web:2", "RollingUpdateStrategy", "64Mi")
	u.says(u.run("delete", "deployment/web", "hpa/web", "service/web", "--cascade=orphan"), `deployment.apps "web" deleted`)
}

// definition is the custom resource; each user has one of its own.
const definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.%[1]s.example}
spec:
  group: %[1]s.example
  scope: Namespaced
  names: {kind: Boat, plural: boats, shortNames: [bo]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.oars, statusReplicasPath: .status.oars}}
    additionalPrinterColumns: [{name: Oars, type: integer, jsonPath: .spec.oars}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              oars: {type: integer, minimum: 0, maximum: 8, description: What it is rowed by}
          status: {type: object, properties: {oars: {type: integer}}}
`

// definitions: custom resources work like built-in ones.
func definitions(u user, _ string) {
	group := u.namespace + ".example"
	boat := fmt.Sprintf("apiVersion: %s/v1\nkind: Boat\nmetadata: {name: skiff}\nspec: {oars: 2}\n", group)
	text := fmt.Sprintf(definition, u.namespace)
	u.says(u.given(text, "apply", "-f", "-"), "boats."+group+" created")
	u.run("wait", "crd/boats."+group, "--for=condition=Established", "--timeout=60s")
	u.is(u.given(boat, "apply", "-f", "-"), "boat."+group+"/skiff created")
	u.says(u.run("get", "boats."+group), "OARS", "skiff   2")
	u.says(u.run("explain", "boats.spec.oars", "--api-version="+group+"/v1"), "rowed")
	u.says(u.fails(strings.Replace(boat, "oars: 2", "oars: 9", 1), "apply", "-f", "-"), "spec.oars", "should be less than or equal to 8")
	u.says(u.fails(strings.Replace(boat, "oars: 2", "sails: 2", 1), "apply", "-f", "-"), "sails")
	u.is(u.run("scale", "boats."+group, "skiff", "--replicas=4"), "boat."+group+"/skiff scaled")
	u.is(u.run("patch", "boats."+group, "skiff", "--type=merge", "-p", `{"metadata":{"labels":{"a":"b"}}}`), "boat."+group+"/skiff patched")
	u.is(u.run("get", "boats."+group, "-l", "a=b", "-o", "jsonpath={.items[*].spec.oars}"), "4")
	u.says(u.run("describe", "boats."+group, "skiff"), "Kind:", "Boat", "Oars:")
	u.run("delete", "crd", "boats."+group)
	u.says(u.fails("", "get", "boats."+group), "the server doesn't have a resource type")
}
