// Package limitranger holds pods, their containers and volume claims to the
// limit ranges of their namespace, and gives containers that don't say what
// they need what the ranges say (Kubernetes docs, "Limit Ranges").
package limitranger
