{{- define "streammetrics.name" -}}
{{- default .Release.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "streammetrics.labels" -}}
app.kubernetes.io/name: streammetrics
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* What each container of a pod has. */}}
{{- define "streammetrics.container" -}}
image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- with .Values.existingSecret }}
envFrom:
  - secretRef: { name: {{ . | quote }} }
{{- end }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
volumeMounts:
  - { name: config, mountPath: /config, readOnly: true }
  - { name: tmp, mountPath: /tmp }
{{- end -}}

{{/*
A pod of `top`, whose container has `args`; `part` is its block of the values. With `waits` it starts
once a worker has made the ledger.
*/}}
{{- define "streammetrics.pod" -}}
automountServiceAccountToken: false
# Or a service called streammetrics would set STREAMMETRICS_PORT, which is a flag of ours.
enableServiceLinks: false
terminationGracePeriodSeconds: 30
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: { type: RuntimeDefault }
{{- with .top.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- if .waits }}
initContainers:
  - name: wait-for-ledger
    {{- include "streammetrics.container" .top | nindent 4 }}
    command:
      - sh
      - -c
      - until streammetrics status "$1" >/dev/null; do sleep 2; done
      - wait-for-ledger
      - {{ .top.Values.store | quote }}
    resources: {{- toYaml .part.resources | nindent 6 }}
{{- end }}
containers:
  - name: streammetrics
    {{- include "streammetrics.container" .top | nindent 4 }}
    args: {{- toYaml .args | nindent 6 }}
    ports:
      - { name: http, containerPort: 8765 }
    startupProbe:
      httpGet: { path: /readyz, port: http }
      periodSeconds: 2
      failureThreshold: 60
    livenessProbe:
      httpGet: { path: /healthz, port: http }
      periodSeconds: 20
      timeoutSeconds: 5
    readinessProbe:
      httpGet: { path: /readyz, port: http }
      periodSeconds: 10
      timeoutSeconds: 5
    resources: {{- toYaml .part.resources | nindent 6 }}
volumes:
  - name: config
    configMap: { name: {{ include "streammetrics.name" .top }} }
  - name: tmp
    emptyDir: {}
{{- with .part.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .part.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .part.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
