"""A broker that also listens with SASL, and with SASL over TLS, for one user."""

from __future__ import annotations

import subprocess

from tests.kafka_broker import Broker, free_ports

USER, PASSWORD = "counter", "hunter2-and-more"
SECURED = """\
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller},\\
SASL_PLAINTEXT://127.0.0.1:{sasl},SASL_SSL://127.0.0.1:{tls}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{sasl},\\
SASL_SSL://127.0.0.1:{tls}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,\\
SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config={jaas}
listener.name.sasl_ssl.plain.sasl.jaas.config={jaas}
ssl.keystore.type=PKCS12
ssl.keystore.location={keystore}
ssl.keystore.password=changeit
ssl.key.password=changeit
"""
JAAS = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'


class Secured(Broker):
    """`sasl` and `tls` are its further addresses, and `authority` the file of the certificate by
    which its own is known."""

    def _config(self, controller: int) -> str:
        sasl, tls = free_ports(2)
        self.sasl, self.tls = f"127.0.0.1:{sasl}", f"127.0.0.1:{tls}"
        self.authority = self.folder / "authority.pem"
        keystore = self.folder / "keys.p12"
        known = ["-alias", "k", "-keystore", str(keystore), "-storepass", "changeit"]
        made = ["-genkeypair", "-keyalg", "RSA", "-storetype", "PKCS12", "-dname", "CN=127.0.0.1"]
        for words in (
            [*made, "-ext", "san=ip:127.0.0.1"],
            ["-exportcert", "-rfc", "-file", str(self.authority)],
        ):
            subprocess.run(["keytool", *words, *known], check=True, capture_output=True)
        more = SECURED.format(
            port=self.port, controller=controller, sasl=sasl, tls=tls, keystore=keystore, jaas=JAAS
        )
        return (
            super()._config(controller) + more
        )  # of a name that is there twice the last one counts
